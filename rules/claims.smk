# Answers to the lab's questions. `snakemake claims` makes neither figures nor the report.


rule claims_evaluate:
    input:
        tables=MADE.tables(),
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
        source=config["dataset"]["source"],
    shell:
        'python "${{SCALING_STUDY_HOME:-.}}"/workflow/scripts/claims_evaluate.py --study {params.study:q}'
        " --source {params.source:q} --tables {input.tables:q} --output {output:q} > {log:q} 2>&1"


rule claims:
    input:
        "<results>/tables/claims.json",
    localrule: True
