# Published studies: from what they print to the tables that measured ones have, and a page.
import re

from grader import study as printed
from grader.folders import Folders

GRADER = f"{OURS}workflow/scripts/grader"
PUBLISHED = Folders(Path(f"{OURS}studies"), reserved=STUDY)
FORMULAS = [f"{GRADER}/mistakes.yaml", f"{GRADER}/formulas.yaml"]


rule tables_published:
    input:
        sources=PUBLISHED.sources,
        texts=FORMULAS,
    output:
        expand("<results>/tables/{{study}}/{table}.csv", table=printed.TABLES),
    log:
        "<logs>/tables_published/{study}.log",
    wildcard_constraints:
        study=f"(?!{re.escape(STUDY)}/)[^/]+",
    localrule: True
    conda:
        "../../envs/study.yaml"
    params:
        code=digest("grader/tables_published"),
        folder=PUBLISHED.of,
        train_images=printed.CIFAR10_TRAIN_IMAGES,
        tables=subpath(output[0], ancestor=2),
    shell:
        'PYTHONPATH="${{SCALING_STUDY_HOME:-.}}"/workflow/scripts python -m grader.tables_published'
        " --folder {params.folder:q} --study {wildcards.study:q}"
        " --train-images {params.train_images} --tables {params.tables:q} > {log:q} 2>&1"


rule tables_comparison:
    input:
        tables=PUBLISHED.tables(RESULTS, "timing", "speedup", "bandwidth"),
        sources=PUBLISHED.files(),
        style=f"{OURS}report/figures.mplstyle",
    output:
        table="<results>/tables/published/comparison.csv",
        figure=report(
            "<results>/figures/published/comparison.svg",
            caption="comparison.rst",
            category="Side by side",
        ),
    log:
        "<logs>/tables_comparison.log",
    localrule: True
    conda:
        "../../envs/study.yaml"
    params:
        code=digest("grader/tables_comparison"),
        tables=subpath(output.table, ancestor=2),
        folders=PUBLISHED.all,
    shell:
        'PYTHONPATH="${{SCALING_STUDY_HOME:-.}}"/workflow/scripts python -m grader.tables_comparison'
        " --tables {params.tables:q} --folders {params.folders:q}"
        " --output {output.table:q} --figure {output.figure:q} > {log:q} 2>&1"


rule published_render:
    input:
        sources=PUBLISHED.files(),
        networks=f"{OURS}studies/published/lab_networks.csv",
        texts=FORMULAS,
        figure=rules.tables_comparison.output.figure,
        template=f"{GRADER}/published.html.j2",
        shared=TEMPLATE,
    output:
        report("<results>/published.html", caption="published.rst", category="Report"),
    log:
        "<logs>/published_render.log",
    localrule: True
    conda:
        "../../envs/study.yaml"
    params:
        code=digest("grader/published_render"),
        folders=PUBLISHED.all,
    shell:
        'PYTHONPATH="${{SCALING_STUDY_HOME:-.}}"/workflow/scripts python -m grader.published_render'
        " --folders {params.folders:q} --networks {input.networks:q} --figure {input.figure:q}"
        " --template {input.template:q} --output {output:q} > {log:q} 2>&1"
