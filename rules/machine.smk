CHECK = {"check": "refuse", **config["machine"], **MOST, "device": config["device"]}
LOOK = ["check", "gpus", "nodes", "device", "time_limit_seconds"]


rule machine_check:
    output:
        MACHINE,
    log:
        "logs/machine_check.log",
    conda:
        "../workflow/envs/study.yaml"
    threads: of_most(timed_threads)
    resources:
        **{name: of_most(resource) for name, resource in TIMED.items()},
        # No parameters: the look was before everything else, and a change of it makes nothing old.
        look=options(CHECK | {"nodes": node_count(MOST)}, *LOOK),
    shell:
        'python "${{SCALING_STUDY_HOME:-.}}"/workflow/scripts/machine_check.py {resources.look} --output {output:q} > {log:q} 2>&1'
