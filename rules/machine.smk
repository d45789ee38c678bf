from scaling.launch.measure import MachineCheck


rule machine_check:
    output:
        f"{RECORDS}/machine{{repeat}}/check.json",
    log:
        "logs/machine_check{repeat}.log",
    priority: JOBS.first
    conda:
        "../workflow/envs/study.yaml"
    threads: lambda wildcards: JOBS.threads({"gpus": JOBS.most})
    resources:
        **JOBS.timed(JOBS.most) | OF_MACHINE,
    params:
        # Depends on resources, so a change outdates nothing: the check came before everything else.
        look=lambda wildcards, resources: JOBS.options(
            MachineCheck,
            gpus=JOBS.most,
            nodes=resources.nodes,
            products=not stored.commands_alone(config),
        ),
    shell:
        'python "${{SCALING_STUDY_HOME:-.}}"/workflow/scripts/machine_check.py {params.look} --output {output:q} > {log:q} 2>&1'
