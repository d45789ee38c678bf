LOOK = {"check": "refuse", **config["machine"], "device": config["device"]}


rule machine_check:
    output:
        MACHINE,
    log:
        "logs/machine_check.log",
    conda:
        "../workflow/envs/study.yaml"
    threads: lambda wildcards: JOBS.threads({"gpus": JOBS.most})
    resources:
        **JOBS.timed(JOBS.most),
    params:
        # Derived from resources, it makes nothing old: the look was before everything else.
        look=lambda wildcards, resources: options(
            LOOK | {"gpus": JOBS.most, "nodes": resources.nodes},
            *("check", "gpus", "nodes", "device", "time_limit_seconds"),
        ),
    shell:
        'python "${{SCALING_STUDY_HOME:-.}}"/workflow/scripts/machine_check.py {params.look} --output {output:q} > {log:q} 2>&1'
