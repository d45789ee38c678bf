from scaling.registry.strategy import STRATEGIES
from scaling.synchronization.plan import Plan

# Each of them is compared with DistributedDataParallel.
PARALLEL = ["ddp", "dp", "fsdp", "zero1"]


rule synchronization_measure:
    input:
        **IMAGES,
        **CHECKED,
    output:
        "<records>/experiments/gpus~{gpus}/synchronization.json",
    log:
        "logs/synchronization_measure/gpus~{gpus}.log",
    conda:
        "../workflow/envs/study.yaml"
    threads: JOBS.threads
    resources:
        **TIMED,
    params:
        code=measuring(
            "synchronization_measure",
            *(module for name in PARALLEL for module in STRATEGIES.modules(name)),
            *model_code(MODEL["model"]),
        ),
        options=JOBS.options(Plan, "synchronization"),
    shell:
        'python "${{SCALING_STUDY_HOME:-.}}"/workflow/scripts/synchronization_measure.py --gpus {wildcards.gpus:q}'
        " --dataset {input.images:q} --manifest {input.manifest:q} {params.options}"
        " --output {output:q} > {log:q} 2>&1"
