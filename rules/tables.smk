# All tables: runs, machine limits, experiments, and tables derived from them.
# scaling/tables/schema.py lists the tables of each kind of records, and their columns.
LIMITS = [*MADE.records["limits"], *MADE.records["limits_of_repeats"]]


rule tables_scaling:
    input:
        records=MADE.runs,
        sweeps=[path for path in LIMITS if path.endswith("/sweep.json")],
        peaks=[path for path in LIMITS if path.endswith("/peaks.json")],
        machine=[path for repeat in REPEATS for path in checked({"repeat": repeat})],
    output:
        tables=MADE.tables_of(runs=True),
        topology="<results>/tables/topology.txt",
        cells="<results>/cells.csv",
        figures="<results>/results.json",
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
        commands=options({"commands": OWN}) if OWN else "",
        study=STUDY,
        tables=subpath(output.topology, parent=True),
    shell:
        'python "${{SCALING_STUDY_HOME:-.}}"/workflow/scripts/tables_scaling.py --grid {params.grid:q} --runs {params.runs:q}'
        " {params.partial} {params.cost} {params.commands} --study {params.study:q} --tables {params.tables:q}"
        " --cells {output.cells:q} --figures {output.figures:q} --sweeps {input.sweeps:q} --peaks {input.peaks:q}"
        " --machine {input.machine:q} > {log:q} 2>&1"


rule tables_experiments:
    input:
        techniques=MADE.records["convergence"],
        trainings=MADE.records["full_trainings"],
        ranks=MADE.records["synchronization"],
        variants=MADE.records["quantization"],
    output:
        MADE.tables_of(runs=False),
    log:
        "<logs>/tables_experiments.log",
    localrule: True
    conda:
        "../workflow/envs/study.yaml"
    params:
        code=digest("tables_experiments"),
        tables=subpath(output[0], parent=True),
        margin=config["convergence"]["accuracy_margin"],
        target=config["time_to_accuracy"]["accuracy"],
    shell:
        'python "${{SCALING_STUDY_HOME:-.}}"/workflow/scripts/tables_experiments.py --tables {params.tables:q}'
        " --margin {params.margin} --techniques {input.techniques:q}"
        " --trainings {input.trainings:q} --target {params.target} --ranks {input.ranks:q}"
        " --variants {input.variants:q} > {log:q} 2>&1"
