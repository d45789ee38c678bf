rule peaks_measure:
    input:
        **CHECKED,
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
        code=measuring("peaks_measure"),
        device=config["device"],
        gpus=JOBS.gpus,
        peaks=options(config["peaks"]),
        machine=options(config["machine"], "cpu_threads", "time_limit_seconds"),
    shell:
        'python "${{SCALING_STUDY_HOME:-.}}"/workflow/scripts/peaks_measure.py --gpus {params.gpus} --device {params.device}'
        " {params.peaks} {params.machine} --output {output:q} > {log:q} 2>&1"
