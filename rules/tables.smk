# All tables, and the answers to the lab's questions that follow from them.
# scaling/tables/schema.py lists the tables of each kind of records, and their columns.
LIMITS = [*MADE.records["limits"], *MADE.records["limits_of_repeats"]]
HAS_RUNS = bool(MADE.records["runs"])


rule tables_make:
    input:
        records=MADE.runs,
        sweeps=[path for path in LIMITS if Path(path).name == "sweep.json"],
        peaks=[path for path in LIMITS if Path(path).name == "peaks.json"],
        machine=[path for repeat in REPEATS for path in checked({"repeat": repeat})]
        * HAS_RUNS,
        techniques=MADE.records["convergence"],
        trainings=MADE.records["full_trainings"],
        ranks=MADE.records["synchronization"],
        variants=MADE.records["quantization"],
    output:
        tables=MADE.tables(),
        of_runs=[
            "<results>/tables/topology.txt",
            "<results>/cells.csv",
            "<results>/results.json",
        ]
        * HAS_RUNS,
        claims="<results>/tables/claims.json",
    log:
        "<logs>/tables_make.log",
    localrule: True
    conda:
        "../workflow/envs/study.yaml"
    params:
        code=digest("tables_make"),
        grid=options({"grid": grid.section(config)}) if HAS_RUNS else "",
        runs=f"{RECORDS}/runs",
        partial=options(config, "partial"),
        cost=options(config["cost"]),
        commands=options({"commands": OWN}) if OWN else "",
        margin=config["convergence"]["accuracy_margin"],
        target=config["time_to_accuracy"]["accuracy"],
        source=config["dataset"]["source"],
        study=STUDY,
        tables=subpath(output.claims, parent=True),
    shell:
        'python "${{SCALING_STUDY_HOME:-.}}"/workflow/scripts/tables_make.py --study {params.study:q}'
        " --tables {params.tables:q} --source {params.source:q} {params.grid} --runs {params.runs:q}"
        " {params.partial} {params.cost} {params.commands} --sweeps {input.sweeps:q}"
        " --peaks {input.peaks:q} --machine {input.machine:q} --margin {params.margin}"
        " --techniques {input.techniques:q} --trainings {input.trainings:q} --target {params.target}"
        " --ranks {input.ranks:q} --variants {input.variants:q} > {log:q} 2>&1"
