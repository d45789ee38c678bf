localrules:
    tables_synchronization,


if not REPLAY:

    rule synchronization_measure:
        input:
            images=ancient(f"{DATASET}/images.npz"),
            manifest=f"{DATASET}/manifest.json",
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
            code=digest(
                "synchronization_measure",
                *STRATEGIES.modules("ddp"),
                *STRATEGIES.modules("dp"),
            ),
            device=lookup(dpath="device", within=config),
            model_width=lookup(dpath="model/width", within=config),
            world_sizes=lookup(dpath="grid/gpus", within=config),
            seeds=lookup(dpath="synchronization/seeds", within=config),
            epochs=lookup(dpath="synchronization/epochs", within=config),
            batch_size=lookup(dpath="synchronization/batch_size", within=config),
            train_images=option(
                "--train-images", config["synchronization"]["train_images"]
            ),
            loader_workers=lookup(dpath="synchronization/loader_workers", within=config),
            learning_rate=lookup(dpath="training/learning_rate", within=config),
            momentum=lookup(dpath="training/momentum", within=config),
            weight_decay=lookup(dpath="training/weight_decay", within=config),
            crop_padding=lookup(dpath="training/crop_padding", within=config),
            horizontal_flip="yes" if config["training"]["horizontal_flip"] else "no",
            tuned_options=json.dumps(config["recipes"]["tuned"]),
            cpu_threads=lookup(dpath="machine/cpu_threads", within=config),
            time_limit_seconds=lookup(dpath="machine/time_limit_seconds", within=config),
            collective_timeout_seconds=lookup(
                dpath="machine/collective_timeout_seconds", within=config
            ),
        shell:
            "python workflow/scripts/synchronization_measure.py --gpus {wildcards.gpus}"
            " --world-sizes {params.world_sizes} --seeds {params.seeds}"
            " --epochs {params.epochs} --batch-size {params.batch_size} {params.train_images}"
            " --loader-workers {params.loader_workers}"
            " --dataset {input.images} --manifest {input.manifest} --device {params.device}"
            " --model-width {params.model_width} --learning-rate {params.learning_rate}"
            " --momentum {params.momentum} --weight-decay {params.weight_decay}"
            " --crop-padding {params.crop_padding}"
            " --horizontal-flip {params.horizontal_flip}"
            " --tuned-options {params.tuned_options:q} --cpu-threads {params.cpu_threads}"
            " --time-limit-seconds {params.time_limit_seconds}"
            " --collective-timeout-seconds {params.collective_timeout_seconds}"
            " --output {output} > {log} 2>&1"


rule tables_synchronization:
    input:
        records=lambda wildcards: records_there(SYNCHRONIZATION),
    output:
        sampler="<results>/tables/sampler.csv",
        accuracy="<results>/tables/sampler_accuracy.csv",
        collectives="<results>/tables/collectives.csv",
        buffers="<results>/tables/buffers.csv",
    log:
        "<logs>/tables_synchronization.log",
    conda:
        "../workflow/envs/study.yaml"
    params:
        code=digest("tables_synchronization"),
    shell:
        "python workflow/scripts/tables_synchronization.py --records {input.records}"
        " --sampler {output.sampler} --accuracy {output.accuracy}"
        " --collectives {output.collectives} --buffers {output.buffers} > {log} 2>&1"
