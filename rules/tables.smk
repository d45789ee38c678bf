# Every table: of the runs, of the machine's limits, of the experiments, and what follows from them.
# Which tables a rule makes, of which records, and their columns, says scaling/tables/columns.py.
import re

from scaling.published.folders import Folders
from scaling.published.study import CIFAR10_TRAIN_IMAGES

MULTI_GPU = [gpus for gpus in config["grid"]["gpus"] if gpus > 1]
PUBLISHED = Folders(Path(f"{OURS}studies"), reserved=STUDY)


rule tables_scaling:
    input:
        records=MADE.runs,
        sweeps=expand("<records>/interconnect/gpus~{gpus}/sweep.json", gpus=MULTI_GPU),
        peaks="<records>/peaks/peaks.json",
        machine=MADE.there(
            [stored.MACHINE] if CHECKED or Path(MACHINE).exists() else []
        ),
    output:
        tables=MADE.tables_by("tables_scaling"),
        topology="<results>/tables/topology.txt",
        cells="<results>/cells.csv",
    log:
        "<logs>/tables_scaling.log",
    localrule: True
    conda:
        "../workflow/envs/study.yaml"
    params:
        code=digest("tables_scaling"),
        grid=json.dumps(grid.section(config)),
        runs=f"{RECORDS}/runs",
        partial=options(config, "partial"),
        cost=options(config["cost"]),
        study=STUDY,
        tables=subpath(output.topology, parent=True),
    shell:
        'python "${{SCALING_STUDY_HOME:-.}}"/workflow/scripts/tables_scaling.py --grid {params.grid:q} --runs {params.runs:q}'
        " {params.partial} {params.cost} --study {params.study:q} --tables {params.tables:q}"
        " --cells {output.cells:q} --sweeps {input.sweeps:q} --peaks {input.peaks:q}"
        " --machine {input.machine:q} > {log:q} 2>&1"


rule tables_experiments:
    input:
        techniques=MADE.records["convergence"],
        trainings=MADE.records["full_trainings"],
        ranks=MADE.records["synchronization"],
        variants=MADE.records["quantization"],
        peers=MADE.records["peers"],
        stages=MADE.records["resnet18"],
        exports=MADE.records["export"],
        timed=MADE.tables_by("tables_scaling") if MADE.records["convergence"] else [],
    output:
        MADE.tables_by("tables_experiments"),
    log:
        "<logs>/tables_experiments.log",
    localrule: True
    conda:
        "../workflow/envs/study.yaml"
    params:
        code=digest("tables_experiments"),
        study=STUDY,
        tables=subpath(output[0], parent=True),
        margin=config["convergence"]["accuracy_margin"],
        accuracies=config["convergence"]["accuracies"],
        target=config["time_to_accuracy"]["accuracy"],
    shell:
        'python "${{SCALING_STUDY_HOME:-.}}"/workflow/scripts/tables_experiments.py --tables {params.tables:q}'
        " --study {params.study:q} --margin {params.margin} --techniques {input.techniques:q}"
        " --timed {input.timed:q}"
        " --accuracies {params.accuracies} --trainings {input.trainings:q}"
        " --target {params.target} --ranks {input.ranks:q} --variants {input.variants:q}"
        " --peers {input.peers:q} --stages {input.stages:q} --exports {input.exports:q}"
        " > {log:q} 2>&1"


# The same tables, from what a published study prints.
rule tables_published:
    input:
        sources=PUBLISHED.sources,
        texts=[f"{OURS}report/mistakes.yaml", f"{OURS}report/formulas.yaml"],
    output:
        expand("<results>/tables/{{study}}/{table}.csv", table=schema.PUBLISHED),
    log:
        "<logs>/tables_published/{study}.log",
    wildcard_constraints:
        study=f"(?!{re.escape(STUDY)}/)[^/]+",
    localrule: True
    conda:
        "../workflow/envs/study.yaml"
    params:
        code=digest("tables_published"),
        folder=PUBLISHED.of,
        train_images=CIFAR10_TRAIN_IMAGES,
        tables=subpath(output[0], ancestor=2),
    shell:
        'python "${{SCALING_STUDY_HOME:-.}}"/workflow/scripts/tables_published.py --folder {params.folder:q}'
        " --study {wildcards.study:q} --train-images {params.train_images}"
        " --tables {params.tables:q} > {log:q} 2>&1"


rule tables_comparison:
    input:
        tables=PUBLISHED.tables(RESULTS, "timing", "speedup", "bandwidth"),
        sources=PUBLISHED.files(),
    output:
        "<results>/tables/published/comparison.csv",
    log:
        "<logs>/tables_comparison.log",
    localrule: True
    conda:
        "../workflow/envs/study.yaml"
    params:
        code=digest("tables_comparison"),
        tables=subpath(output[0], ancestor=2),
        folders=PUBLISHED.all,
    shell:
        'python "${{SCALING_STUDY_HOME:-.}}"/workflow/scripts/tables_comparison.py --tables {params.tables:q}'
        " --folders {params.folders:q} --output {output:q} > {log:q} 2>&1"
