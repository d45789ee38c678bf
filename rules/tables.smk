# Every table: of the runs, of the machine's limits, of the experiments, and what follows from them.
# Which tables a rule makes, of which records, and their columns, says scaling/tables/columns.py.
MULTI_GPU = [gpus for gpus in config["grid"]["gpus"] if gpus > 1]


rule tables_runs:
    input:
        records=records,
    output:
        tables=tables_by("tables_runs"),
        cells="<results>/cells.csv",
    log:
        "<logs>/tables_runs.log",
    localrule: True
    conda:
        "../workflow/envs/study.yaml"
    params:
        code=digest("tables_runs"),
        grid=json.dumps(grid.section(config)),
        runs=f"{RECORDS}/runs",
        partial=options(config, "partial"),
        cost=options(config.get("cost", {})),
        study=STUDY,
        tables=subpath(output[0], ancestor=2),
    shell:
        "python workflow/scripts/tables_runs.py --grid {params.grid:q} --runs {params.runs:q}"
        " {params.partial} {params.cost} --study {params.study:q} --tables {params.tables:q}"
        " --cells {output.cells:q} > {log:q} 2>&1"


rule tables_limits:
    input:
        sweeps=expand("<records>/interconnect/gpus~{gpus}/sweep.json", gpus=MULTI_GPU),
        peaks="<records>/peaks/peaks.json",
        machine=records_there([MACHINE] if CHECKED or Path(MACHINE).exists() else []),
    output:
        tables=tables_by("tables_limits"),
        topology="<results>/tables/topology.txt",
    log:
        "<logs>/tables_limits.log",
    localrule: True
    conda:
        "../workflow/envs/study.yaml"
    params:
        code=digest("tables_limits"),
        tables=subpath(output[0], parent=True),
    shell:
        "python workflow/scripts/tables_limits.py --sweeps {input.sweeps:q} --peaks {input.peaks:q}"
        " --machine {input.machine:q} --tables {params.tables:q} > {log:q} 2>&1"


rule tables_derived:
    input:
        own=expand(
            f"<results>/tables/{STUDY}/{{table}}.csv",
            table=["timing", "readings", "in_memory", "ranks", "costs", "device_time"],
        ),
        limits=tables_by("tables_limits"),
        knobs=RECORDS_OF["knobs"],
    output:
        tables_by("tables_derived"),
    log:
        "<logs>/tables_derived.log",
    localrule: True
    conda:
        "../workflow/envs/study.yaml"
    params:
        code=digest("tables_derived"),
        study=STUDY,
        tables=subpath(output[0], ancestor=2),
    shell:
        "python workflow/scripts/tables_derived.py --study {params.study:q}"
        " --tables {params.tables:q} --knobs {input.knobs:q} > {log:q} 2>&1"


# The same tables, from what a published study prints.
rule tables_published:
    input:
        sources=published_sources,
        texts=["report/mistakes.yaml", "report/formulas.yaml"],
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
        folder=published_folder,
        train_images=CIFAR10_TRAIN_IMAGES,
        tables=subpath(output[0], ancestor=2),
    shell:
        "python workflow/scripts/tables_published.py --folder {params.folder:q}"
        " --study {wildcards.study:q} --train-images {params.train_images}"
        " --tables {params.tables:q} > {log:q} 2>&1"


rule tables_comparison:
    input:
        tables=compared("timing", "speedup", "bandwidth"),
        sources=published_files(),
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
        folders=published_folders(),
    shell:
        "python workflow/scripts/tables_comparison.py --tables {params.tables:q}"
        " --folders {params.folders:q} --output {output:q} > {log:q} 2>&1"


rule tables_convergence:
    input:
        records=RECORDS_OF["convergence"],
        trainings=RECORDS_OF["full_trainings"],
        timed=tables_by("tables_runs"),
    output:
        tables_by("tables_convergence"),
    log:
        "<logs>/tables_convergence.log",
    localrule: True
    conda:
        "../workflow/envs/study.yaml"
    params:
        code=digest("tables_convergence"),
        study=STUDY,
        tables=subpath(output[0], parent=True),
        margin=config["convergence"]["accuracy_margin"],
        accuracies=config["convergence"].get("accuracies", []),
        target=config.get("time_to_accuracy", {}).get("accuracy", 1.0),
    shell:
        "python workflow/scripts/tables_convergence.py --records {input.records:q}"
        " --timed {input.timed:q} --study {params.study:q} --tables {params.tables:q}"
        " --margin {params.margin}"
        " --accuracies {params.accuracies} --trainings {input.trainings:q}"
        " --target {params.target} > {log:q} 2>&1"


rule tables_synchronization:
    input:
        records=RECORDS_OF["synchronization"],
    output:
        tables_by("tables_synchronization"),
    log:
        "<logs>/tables_synchronization.log",
    localrule: True
    conda:
        "../workflow/envs/study.yaml"
    params:
        code=digest("tables_synchronization"),
        tables=subpath(output[0], parent=True),
    shell:
        "python workflow/scripts/tables_synchronization.py --records {input.records:q}"
        " --tables {params.tables:q} > {log:q} 2>&1"


rule tables_quantization:
    input:
        records=RECORDS_OF["quantization"],
        peers=RECORDS_OF["peers"],
        stages=RECORDS_OF["resnet18"],
        exports=RECORDS_OF["export"],
    output:
        tables_by("tables_quantization"),
    log:
        "<logs>/tables_quantization.log",
    localrule: True
    conda:
        "../workflow/envs/study.yaml"
    params:
        code=digest("tables_quantization"),
        folder=subpath(output[0], parent=True),
    shell:
        "python workflow/scripts/tables_quantization.py --records {input.records:q}"
        " --peers {input.peers:q} --stages {input.stages:q} --exports {input.exports:q}"
        " --tables {params.folder:q} > {log:q} 2>&1"
