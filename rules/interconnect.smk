rule interconnect_sweep:
    input:
        **CHECKED,
        manifest=f"{DATASET}/manifest.json",
    output:
        "<records>/interconnect/gpus~{gpus}/sweep.json",
    log:
        "logs/interconnect_sweep/gpus~{gpus}.log",
    conda:
        "../workflow/envs/study.yaml"
    threads: timed_threads
    resources:
        **TIMED,
    params:
        code=measuring("interconnect_sweep", *models.code(MODEL["model"])),
        nodes=TIMED["nodes"],
        device=config["device"],
        model=options(MODEL),
        interconnect=options(
            config["interconnect"], "message_bytes", "warmup", "repeats", "iterations"
        ),
        machine=options(config["machine"], "time_limit_seconds"),
    shell:
        'python "${{SCALING_STUDY_HOME:-.}}"/workflow/scripts/interconnect_sweep.py --gpus {wildcards.gpus:q}'
        " --nodes {params.nodes} --device {params.device}"
        " --manifest {input.manifest:q} {params.model} {params.interconnect} {params.machine}"
        " --output {output:q} > {log:q} 2>&1"
