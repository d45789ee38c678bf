# Each of them is compared with DistributedDataParallel.
PARALLEL = ["ddp", "dp", "fsdp", "zero1"]

if not REPLAY:

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
        threads: timed_threads
        resources:
            **TIMED,
        params:
            code=measuring(
                "synchronization_measure",
                *(m for name in PARALLEL for m in STRATEGIES.modules(name)),
                *models.code(MODEL["model"]),
            ),
            world_sizes=config["grid"]["gpus"],
            synchronization=options(config["synchronization"]),
            training=options(TRAINING | MODEL),
            tuned_options=json.dumps(grid.recipe_options(config, "tuned")),
            machine=options(config["machine"], *LIMITS),
        shell:
            'python "${{SCALING_STUDY_HOME:-.}}"/workflow/scripts/synchronization_measure.py --gpus {wildcards.gpus:q}'
            " --world-sizes {params.world_sizes} --dataset {input.images:q}"
            " --manifest {input.manifest:q} {params.synchronization} {params.training}"
            " --tuned-options {params.tuned_options:q} {params.machine}"
            " --output {output:q} > {log:q} 2>&1"
