rule quantize_train:
    input:
        images=ancient(f"{DATASET}/images.npz"),
        manifest=f"{DATASET}/manifest.json",
    output:
        weights="<records>/quantization/seed~{seed}/float32.pt",
        summary="<records>/quantization/seed~{seed}/training.json",
    log:
        "logs/quantize_train/seed~{seed}.log",
    conda:
        "../workflow/envs/study.yaml"
    params:
        code=digest("quantize_train"),
        device=lookup(dpath="device", within=config),
        epochs=lookup(dpath="quantization/epochs", within=config),
        batch_size=lookup(dpath="quantization/batch_size", within=config),
        learning_rate=lookup(dpath="quantization/learning_rate", within=config),
        momentum=lookup(dpath="quantization/momentum", within=config),
    shell:
        "python workflow/scripts/quantize_train.py --dataset {input.images}"
        " --manifest {input.manifest} --seed {wildcards.seed} --device {params.device}"
        " --epochs {params.epochs} --batch-size {params.batch_size}"
        " --learning-rate {params.learning_rate} --momentum {params.momentum}"
        " --output {output.weights} --summary {output.summary} > {log} 2>&1"


# One job for each seed and variant, so that a new variant runs alone.
rule quantize_evaluate:
    input:
        images=ancient(f"{DATASET}/images.npz"),
        manifest=f"{DATASET}/manifest.json",
        weights="<records>/quantization/seed~{seed}/float32.pt",
    output:
        "<records>/quantization/seed~{seed}/variant~{variant}/quantization.json",
    log:
        "logs/quantize_evaluate/seed~{seed}/variant~{variant}.log",
    conda:
        "../workflow/envs/study.yaml"
    params:
        code=digest("quantize_evaluate"),
        device=lookup(dpath="device", within=config),
        scheme=variant_options,
        calibration_images=lookup(
            dpath="quantization/calibration_images", within=config
        ),
        histograms=lambda wildcards: (
            "--histograms"
            if wildcards.variant == config["quantization"]["histograms"]
            else ""
        ),
    shell:
        "python workflow/scripts/quantize_evaluate.py --dataset {input.images}"
        " --manifest {input.manifest} --weights {input.weights} --seed {wildcards.seed}"
        " --variant {wildcards.variant} --scheme {params.scheme:q} {params.histograms}"
        " --calibration-images {params.calibration_images} --device {params.device}"
        " --output {output} > {log} 2>&1"


# Timed, but on the CPU: it has the machine to itself and takes no GPU.
rule quantize_peers:
    input:
        images=ancient(f"{DATASET}/images.npz"),
        manifest=f"{DATASET}/manifest.json",
        weights="<records>/quantization/seed~{seed}/float32.pt",
    output:
        "<records>/quantization/seed~{seed}/peers.json",
    log:
        "logs/quantize_peers/seed~{seed}.log",
    conda:
        "../workflow/envs/study.yaml"
    threads: timed_threads
    resources:
        runtime=TIMED["runtime"],
        slurm_extra=slurm_options,
    params:
        code=digest("quantize_peers"),
        peers=lookup(dpath="quantization/peers", within=config),
        calibration_images=lookup(
            dpath="quantization/calibration_images", within=config
        ),
        cpu_threads=lookup(dpath="machine/cpu_threads", within=config),
    shell:
        "python workflow/scripts/quantize_peers.py --dataset {input.images}"
        " --manifest {input.manifest} --weights {input.weights} --seed {wildcards.seed}"
        " --calibration-images {params.calibration_images} --peers {params.peers}"
        " --threads {params.cpu_threads} --output {output} > {log} 2>&1"


rule quantize_train_resnet:
    input:
        images=ancient(f"{DATASET}/images.npz"),
        manifest=f"{DATASET}/manifest.json",
    output:
        weights="<records>/quantization/seed~{seed}/resnet18.pt",
        summary="<records>/quantization/seed~{seed}/resnet18_training.json",
    log:
        "logs/quantize_train_resnet/seed~{seed}.log",
    conda:
        "../workflow/envs/study.yaml"
    params:
        code=digest("quantize_train_resnet"),
        device=lookup(dpath="device", within=config),
        model_width=lookup(dpath="model/width", within=config),
        epochs=config["training"]["warmup_epochs"]
        + config["training"]["measured_epochs"],
        batch_size=min(config["grid"]["batch_sizes"]),
        learning_rate=lookup(dpath="training/learning_rate", within=config),
        momentum=lookup(dpath="training/momentum", within=config),
        weight_decay=lookup(dpath="training/weight_decay", within=config),
        crop_padding=lookup(dpath="training/crop_padding", within=config),
        horizontal_flip="yes" if config["training"]["horizontal_flip"] else "no",
        recipe_options=json.dumps(config["recipes"]["course"]),
    shell:
        "python workflow/scripts/quantize_train_resnet.py --dataset {input.images}"
        " --manifest {input.manifest} --seed {wildcards.seed} --device {params.device}"
        " --model-width {params.model_width} --epochs {params.epochs}"
        " --batch-size {params.batch_size} --learning-rate {params.learning_rate}"
        " --momentum {params.momentum} --weight-decay {params.weight_decay}"
        " --crop-padding {params.crop_padding} --horizontal-flip {params.horizontal_flip}"
        " --recipe-options {params.recipe_options:q}"
        " --output {output.weights} --summary {output.summary} > {log} 2>&1"


rule quantize_resnet:
    input:
        images=ancient(f"{DATASET}/images.npz"),
        manifest=f"{DATASET}/manifest.json",
        weights="<records>/quantization/seed~{seed}/resnet18.pt",
    output:
        "<records>/quantization/seed~{seed}/resnet18.json",
    log:
        "logs/quantize_resnet/seed~{seed}.log",
    conda:
        "../workflow/envs/study.yaml"
    params:
        code=digest("quantize_resnet"),
        device=lookup(dpath="device", within=config),
        model_width=lookup(dpath="model/width", within=config),
        calibration_images=lookup(
            dpath="quantization/calibration_images", within=config
        ),
    shell:
        "python workflow/scripts/quantize_resnet.py --dataset {input.images}"
        " --manifest {input.manifest} --weights {input.weights} --seed {wildcards.seed}"
        " --model-width {params.model_width} --device {params.device}"
        " --calibration-images {params.calibration_images} --output {output} > {log} 2>&1"
