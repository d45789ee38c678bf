from scaling.launch.measure import Probe


rule peaks_measure:
    input:
        **CHECKED,
    output:
        "<records>/peaks{repeat}/peaks.json",
    log:
        "logs/peaks_measure{repeat}.log",
    priority: JOBS.first
    conda:
        "../workflow/envs/study.yaml"
    threads: JOBS.threads
    resources:
        **TIMED | OF_MACHINE,
    params:
        code=measuring("peaks_measure"),
        gpus=JOBS.gpus,
        options=JOBS.options(Probe, "peaks"),
    shell:
        'python "${{SCALING_STUDY_HOME:-.}}"/workflow/scripts/peaks_measure.py --gpus {params.gpus} {params.options}'
        " --output {output:q} > {log:q} 2>&1"
