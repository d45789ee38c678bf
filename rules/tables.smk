# All tables, and the answers to the lab's questions that follow from them.
# scaling/tables/schema.py lists the tables of each kind of records, and their columns.
LIMITS = [*FILES.records["limits"], *FILES.records["limits_of_repeats"]]
HAS_RUNS = bool(FILES.records["runs"])
RECORDED = "sweeps peaks machine techniques trainings ranks variants".split()


rule tables_make:
    input:
        records=FILES.runs,
        sweeps=[path for path in LIMITS if Path(path).name == "sweep.json"],
        peaks=[path for path in LIMITS if Path(path).name == "peaks.json"],
        machine=[path for repeat in REPEATS for path in checked({"repeat": repeat})]
        * HAS_RUNS,
        techniques=FILES.records["convergence"],
        trainings=FILES.records["full_trainings"],
        ranks=FILES.records["synchronization"],
        variants=FILES.records["quantization"],
    output:
        tables=FILES.tables(),
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
        job=lambda wildcards, input: as_json(
            study=STUDY,
            tables=f"{RESULTS}/tables",
            source=config["dataset"]["source"],
            grid=grid.section(config) if HAS_RUNS else {},
            runs=f"{RECORDS}/runs",
            partial=config["partial"],
            per_gpu_hour=config["cost"]["per_gpu_hour"],
            commands=OWN,
            margin=config["convergence"]["accuracy_margin"],
            target=config["time_to_accuracy"]["accuracy"],
            **{key: input[key] for key in RECORDED},
        ),
    shell:
        'python "${{SCALING_STUDY_HOME:-.}}"/workflow/scripts/tables_make.py {params.job:q} > {log:q} 2>&1'
