# The lab's questions, answered from the tables. `snakemake claims` makes no figure and no report.
CLAIM_TABLES = [
    *("timing", "speedup", "communication", "bandwidth", "utilization", "cost_model"),
    *("device_time", "provenance"),
]
CLAIM_SHARED_TABLES = ["accuracy"]
CLAIM_SHARED_TABLES += ["convergence", "loss_curves", "remedies", "time_to_accuracy"]
CLAIM_SHARED_TABLES += SYNCHRONIZATION_TABLES


rule claims_evaluate:
    input:
        tables=expand(f"<results>/tables/{STUDY}/{{table}}.csv", table=CLAIM_TABLES),
        shared_tables=expand("<results>/tables/{table}.csv", table=CLAIM_SHARED_TABLES),
        texts=sorted(map(str, Path("report/claims").glob("*.yaml"))),
    output:
        "<results>/tables/claims.json",
    log:
        "<logs>/claims_evaluate.log",
    localrule: True
    conda:
        "../workflow/envs/study.yaml"
    params:
        code=digest("claims_evaluate"),
        study=STUDY,
    shell:
        "python workflow/scripts/claims_evaluate.py --study {params.study}"
        " --tables {input.tables} {input.shared_tables} --output {output} > {log} 2>&1"


rule claims:
    input:
        "<results>/tables/claims.json",
    localrule: True
