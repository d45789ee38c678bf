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
        look=lambda wildcards, resources: told.look(config, resources.nodes),
    shell:
        'python "${{SCALING_STUDY_HOME:-.}}"/workflow/scripts/machine_check.py {params.look} --output {output:q} > {log:q} 2>&1'
