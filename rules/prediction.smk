localrules:
    tables_prediction,


rule tables_prediction:
    input:
        timing="<results>/tables/{study}/timing.csv",
        interconnect=measured(f"{RESULTS}/tables/interconnect.csv"),
        fit=measured(f"{RESULTS}/tables/interconnect_fit.csv"),
    output:
        prediction="<results>/tables/{study}/prediction.csv",
        model="<results>/tables/{study}/cost_model.csv",
    log:
        "<logs>/tables_prediction/{study}.log",
    conda:
        "../workflow/envs/study.yaml"
    params:
        code=digest("tables_prediction"),
        interconnect=lambda _, input: option(
            "--interconnect", input.get("interconnect") or None
        ),
        fit=lambda _, input: option("--fit", input.get("fit") or None),
    shell:
        "python workflow/scripts/tables_prediction.py --timing {input.timing}"
        " {params.interconnect} {params.fit} --output {output.prediction}"
        " --model {output.model} > {log} 2>&1"
