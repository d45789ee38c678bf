rule train_run:
    input:
        images=ancient(f"{DATASET}/images.npz"),
        manifest=f"{DATASET}/manifest.json",
    output:
        f"<records>/runs/{grid.RUN_PATTERN}/run.json",
    log:
        f"logs/train_run/{grid.RUN_PATTERN}.log",
    benchmark:
        f"benchmarks/train_run/{grid.RUN_PATTERN}.tsv"
    conda:
        "../workflow/envs/study.yaml"
    threads: timed_threads
    resources:
        **TIMED,
    params:
        code=lambda wildcards: digest("train_run", *cell_modules(wildcards)),
        nodes=node_count,
        device=lookup(dpath="device", within=config),
        model_width=lookup(dpath="model/width", within=config),
        warmup_epochs=lookup(dpath="training/warmup_epochs", within=config),
        measured_epochs=lookup(dpath="training/measured_epochs", within=config),
        instrumented_iterations=lookup(
            dpath="training/instrumented_iterations", within=config
        ),
        learning_rate=lookup(dpath="training/learning_rate", within=config),
        momentum=lookup(dpath="training/momentum", within=config),
        weight_decay=lookup(dpath="training/weight_decay", within=config),
        crop_padding=lookup(dpath="training/crop_padding", within=config),
        horizontal_flip="yes" if config["training"]["horizontal_flip"] else "no",
        recipe_options=lambda wildcards: json.dumps(config["recipes"][wildcards.recipe]),
        cpu_threads=lookup(dpath="machine/cpu_threads", within=config),
        time_limit_seconds=lookup(dpath="machine/time_limit_seconds", within=config),
        collective_timeout_seconds=lookup(
            dpath="machine/collective_timeout_seconds", within=config
        ),
    shell:
        # What is compiled for one cell serves every other cell of that batch size.
        "TORCHINDUCTOR_CACHE_DIR=${{TORCHINDUCTOR_CACHE_DIR:-$PWD/resources/compiled}}"
        " TRITON_CACHE_DIR=${{TRITON_CACHE_DIR:-$PWD/resources/compiled/triton}}"
        " python workflow/scripts/train_run.py"
        " --recipe {wildcards.recipe} --strategy {wildcards.strategy} --gpus {wildcards.gpus}"
        " --nodes {params.nodes} --batch-size {wildcards.batch_size} --seed {wildcards.seed}"
        " --dataset {input.images} --manifest {input.manifest} --device {params.device}"
        " --model-width {params.model_width} --warmup-epochs {params.warmup_epochs}"
        " --measured-epochs {params.measured_epochs}"
        " --instrumented-iterations {params.instrumented_iterations}"
        " --learning-rate {params.learning_rate}"
        " --momentum {params.momentum} --weight-decay {params.weight_decay}"
        " --crop-padding {params.crop_padding} --horizontal-flip {params.horizontal_flip}"
        " --recipe-options {params.recipe_options:q} --cpu-threads {params.cpu_threads}"
        " --time-limit-seconds {params.time_limit_seconds}"
        " --collective-timeout-seconds {params.collective_timeout_seconds}"
        " --output {output} > {log} 2>&1"


# One GPU is one plain process for every strategy: it is measured once, as ddp.
if {"dp", "ddp"} <= set(config["grid"]["strategies"]):

    localrules:
        train_single,

    ruleorder: train_single > train_run

    rule train_single:
        input:
            record=f"<records>/runs/{single_gpu_run('ddp')}/run.json",
        output:
            f"<records>/runs/{single_gpu_run('dp')}/run.json",
        log:
            f"logs/train_run/{single_gpu_run('dp')}.log",
        conda:
            "../workflow/envs/study.yaml"
        params:
            code=digest("train_single"),
        shell:
            "python workflow/scripts/train_single.py --record {input.record} --strategy dp"
            " --output {output} > {log} 2>&1"
