# Int8 beyond the lab: a ResNet-18, trained as a cell on one GPU, by recipe tuned where the grid has it.
RESNET = {
    "recipe": (
        "tuned"
        if "tuned" in config["grid"]["recipes"]
        else config["grid"]["recipes"][0]
    ),
    "epochs": config["training"]["warmup_epochs"]
    + config["training"]["measured_epochs"],
    "batch_size": min(config["grid"]["batch_sizes"]),
}


use rule quantize_train as quantize_train_resnet with:
    output:
        weights="<records>/quantization/seed~{seed}/resnet18.pt",
        summary="<records>/quantization/seed~{seed}/resnet18_training.json",
    log:
        "logs/quantize_train_resnet/seed~{seed}.log",
    conda:
        "../../../envs/study.yaml"
    params:
        code=jobs.of_quantized(
            *("quantize_train", "resnet18-cifar", "training"),
            *engines.ENGINES.modules(config["recipes"][RESNET["recipe"]]["engine"]),
        ),
        model="resnet18-cifar",
        training=" ".join(
            [
                options(TRAINING | RESNET),
                JOBS.recipe(RESNET["recipe"]),
            ]
        ),


use rule quantize_evaluate as quantize_evaluate_resnet with:
    input:
        **IMAGES,
        weights="<records>/quantization/seed~{seed}/resnet18.pt",
    output:
        "<records>/quantization/seed~{seed}/resnet18.json",
    log:
        "logs/quantize_evaluate_resnet/seed~{seed}.log",
    conda:
        "../../../envs/study.yaml"
    # Without a GPU each core counts.
    threads: JOBS.cores
    params:
        code=jobs.of_quantized("quantize_evaluate", "resnet18-cifar", "evaluation"),
        model="resnet18-cifar",
        written=lambda wildcards, output: output[0],
        own=options(TRAINING, "model_width"),
