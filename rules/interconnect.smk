rule interconnect_sweep:
    input:
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
        code=digest("interconnect_sweep"),
        nodes=node_count,
        device=lookup(dpath="device", within=config),
        model_width=lookup(dpath="model/width", within=config),
        message_bytes=lookup(dpath="interconnect/message_bytes", within=config),
        warmup=lookup(dpath="interconnect/warmup", within=config),
        repeats=lookup(dpath="interconnect/repeats", within=config),
        iterations=lookup(dpath="interconnect/iterations", within=config),
        time_limit_seconds=lookup(dpath="machine/time_limit_seconds", within=config),
    shell:
        "python workflow/scripts/interconnect_sweep.py --gpus {wildcards.gpus}"
        " --nodes {params.nodes}"
        " --device {params.device} --message-bytes {params.message_bytes}"
        " --model-width {params.model_width} --manifest {input.manifest}"
        " --warmup {params.warmup} --repeats {params.repeats} --iterations {params.iterations}"
        " --time-limit-seconds {params.time_limit_seconds} --output {output} > {log} 2>&1"
