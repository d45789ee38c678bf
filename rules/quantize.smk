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
