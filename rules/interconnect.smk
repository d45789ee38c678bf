from scaling.launch.measure import Sweep


rule interconnect_sweep:
    input:
        **CHECKED,
        manifest=f"{DATASET}/manifest.json",
    output:
        "<records>/interconnect/gpus~{gpus}{repeat}/sweep.json",
    log:
        "logs/interconnect_sweep/gpus~{gpus}{repeat}.log",
    priority: JOBS.first
    conda:
        "../workflow/envs/study.yaml"
    threads: JOBS.threads
    resources:
        **TIMED | OF_MACHINE,
    params:
        code=measuring("interconnect_sweep", *model_code(MODEL["model"])),
        nodes=TIMED["nodes"],
        options=JOBS.options(Sweep, "interconnect"),
    shell:
        'python "${{SCALING_STUDY_HOME:-.}}"/workflow/scripts/interconnect_sweep.py --gpus {wildcards.gpus:q}'
        " --nodes {params.nodes} --manifest {input.manifest:q} {params.options} --output {output:q} > {log:q} 2>&1"
