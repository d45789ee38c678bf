rule peaks_measure:
    output:
        "<records>/peaks/peaks.json",
    log:
        "logs/peaks_measure.log",
    conda:
        "../workflow/envs/study.yaml"
    threads: timed_threads
    resources:
        **TIMED,
    params:
        code=digest("peaks_measure"),
        device=lookup(dpath="device", within=config),
        gpus=gpus_of,
        matrix_sizes=lookup(dpath="peaks/matrix_sizes", within=config),
        copy_bytes=lookup(dpath="peaks/copy_bytes", within=config),
        repeats=lookup(dpath="peaks/repeats", within=config),
        cpu_threads=lookup(dpath="machine/cpu_threads", within=config),
        time_limit_seconds=lookup(dpath="machine/time_limit_seconds", within=config),
    shell:
        "python workflow/scripts/peaks_measure.py --gpus {params.gpus} --device {params.device}"
        " --matrix-sizes {params.matrix_sizes} --copy-bytes {params.copy_bytes}"
        " --repeats {params.repeats} --cpu-threads {params.cpu_threads}"
        " --time-limit-seconds {params.time_limit_seconds} --output {output} > {log} 2>&1"
