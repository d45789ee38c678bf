MOST = {"gpus": max(config["grid"]["gpus"])}
CHECK = {"check": "refuse", **config["machine"], **MOST, "device": config["device"]}
# No parameters: the look was before everything else, and a change of it makes nothing old.
os.environ["SCALING_STUDY_MACHINE_CHECK"] = options(
    CHECK | {"nodes": node_count(MOST)},
    *("check", "gpus", "nodes", "device", "time_limit_seconds"),
)


def of_most(resource):
    """A resource as it is of jobs on the most GPUs."""
    return (lambda wildcards: resource(MOST)) if callable(resource) else resource


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
    shell:
        "python workflow/scripts/machine_check.py $SCALING_STUDY_MACHINE_CHECK"
        " --output {output} > {log} 2>&1"
