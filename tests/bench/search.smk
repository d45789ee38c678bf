# Searches for a technique by held-out images, in the prepared images of config/large-batches.yaml:
#   snakemake --cores 1 -s tests/bench/search.smk results/search.csv
import json

from scaling.core import command_line


configfile: "tests/bench/search.yaml"


def asked(wildcards, key=None):
    """Return the options of a search but the dictionaries, or of these one as JSON, in its order."""
    own = config["study"] | config["searches"][wildcards.name]
    if key:
        return json.dumps(own[key])
    return command_line.options(own, *(own.keys() - {"start", "values"}))


rule collect:
    input:
        expand("results/search/{name}.csv", name=config["searches"]),
    output:
        "results/search.csv",
    shell:
        "awk 'FNR > 1 || NR == 1' {input:q} > {output:q}"


rule search:
    input:
        images=ancient("resources/dataset/images/images.npz"),
        manifest=ancient("resources/dataset/images/manifest.json"),
    output:
        "results/search/{name}.csv",
    params:
        options=asked,
        start=lambda wildcards: asked(wildcards, "start"),
        values=lambda wildcards: asked(wildcards, "values"),
    shell:
        "python tests/bench/search.py --dataset {input.images:q} --manifest {input.manifest:q}"
        " {params.options} --start {params.start:q} --values {params.values:q} --output {output:q}"
