# Int8 beyond the lab: ONNX files of its network, and a ResNet-18.
# That is trained as a cell on one GPU, for speed where the grid has recipe tuned.
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
            *ENGINES.modules(config["recipes"][RESNET["recipe"]]["engine"]),
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


# Timed, but on the CPU: it has the machine to itself and takes no GPU. The files are what there is
# to take away; a stored study has the record.
# The file of a network that cannot be made is empty.
rule quantize_export:
    input:
        **IMAGES,
        weights="<records>/quantization/seed~{seed}/float32.pt",
    output:
        record="<records>/quantization/seed~{seed}/export.json",
        networks=multiext(
            "<records>/quantization/seed~{seed}/tutorial-cnn-",
            *("float32.onnx", "int8.onnx", "uint8.onnx"),
        ),
    log:
        "logs/quantize_export/seed~{seed}.log",
    conda:
        "../../../envs/study.yaml"
    threads: timed_threads
    resources:
        **JOBS.timed(gpus=0),
    params:
        code=jobs.of_quantized(
            "extras/bits/quantize_export", "tutorial-cnn", "evaluation"
        ),
        model="tutorial-cnn",
        calibration=options(config["quantization"], "calibration_images"),
        own="",
    shell:
        'PYTHONPATH="${{SCALING_STUDY_HOME:-.}}"/workflow/scripts python -m extras.bits.quantize_export'
        " --model {params.model} {params.own}"
        " --dataset {input.images:q} --manifest {input.manifest:q} --weights {input.weights:q}"
        " --seed {wildcards.seed:q} {params.calibration}"
        " --output {output.record:q} > {log:q} 2>&1"


use rule quantize_export as quantize_export_resnet with:
    input:
        **IMAGES,
        weights="<records>/quantization/seed~{seed}/resnet18.pt",
    output:
        record="<records>/quantization/seed~{seed}/resnet18_export.json",
        networks=multiext(
            "<records>/quantization/seed~{seed}/resnet18-cifar-",
            *("float32.onnx", "int8.onnx", "uint8.onnx"),
        ),
    log:
        "logs/quantize_export_resnet/seed~{seed}.log",
    params:
        code=jobs.of_quantized(
            "extras/bits/quantize_export", "resnet18-cifar", "evaluation"
        ),
        model="resnet18-cifar",
        own=options(TRAINING, "model_width"),
