# The network of the lab's Part B, and a ResNet-18: trained, quantized and exported to ONNX.
from scaling.core.records.quantization import VARIANT_PATTERN

VARIANTS = told.variants(config)


# Not timed: may share the machine with other jobs, but not its GPU.
rule quantize_train:
    input:
        **IMAGES,
    output:
        weights="<records>/quantization/seed~{seed}/float32.pt",
        summary="<records>/quantization/seed~{seed}/training.json",
    log:
        "logs/quantize_train/seed~{seed}.log",
    conda:
        "../workflow/envs/study.yaml"
    params:
        code=code.of_quantized("quantize_train", "tutorial-cnn", "training"),
        model="tutorial-cnn",
        training=told.quantized_network(config),
    shell:
        'python "${{SCALING_STUDY_HOME:-.}}"/workflow/scripts/quantize_train.py --model {params.model}'
        " --dataset {input.images:q} --manifest {input.manifest:q} --seed {wildcards.seed:q}"
        " {params.training}"
        " --output {output.weights:q} --summary {output.summary:q} > {log:q} 2>&1"


use rule quantize_train as quantize_train_resnet with:
    output:
        weights="<records>/quantization/seed~{seed}/resnet18.pt",
        summary="<records>/quantization/seed~{seed}/resnet18_training.json",
    log:
        "logs/quantize_train_resnet/seed~{seed}.log",
    params:
        code=code.of_quantized(
            *("quantize_train", "resnet18-cifar", "training"),
            *ENGINES.modules(told.quantized_engine(config)),
        ),
        model="resnet18-cifar",
        training=told.quantized_resnet(config),


# One job for all variants of a network, which share it and its images.
rule quantize_evaluate:
    input:
        **IMAGES,
        weights="<records>/quantization/seed~{seed}/float32.pt",
    output:
        expand(
            f"<records>/quantization/seed~{{{{seed}}}}/{VARIANT_PATTERN}",
            variant=VARIANTS,
        ),
    log:
        "logs/quantize_evaluate/seed~{seed}.log",
    conda:
        "../workflow/envs/study.yaml"
    params:
        code=code.of_quantized("quantize_evaluate", "tutorial-cnn", "evaluation"),
        model="tutorial-cnn",
        device=config["device"],
        calibration=told.calibration(config),
        written=subpath(output[0], ancestor=2),
        own=options(
            {"variants": VARIANTS, "histograms": config["quantization"]["histograms"]}
        ),
    shell:
        'python "${{SCALING_STUDY_HOME:-.}}"/workflow/scripts/quantize_evaluate.py --model {params.model}'
        " --dataset {input.images:q} --manifest {input.manifest:q} --weights {input.weights:q}"
        " --seed {wildcards.seed:q} {params.calibration}"
        " --device {params.device} {params.own} --output {params.written:q} > {log:q} 2>&1"


use rule quantize_evaluate as quantize_evaluate_resnet with:
    input:
        **IMAGES,
        weights="<records>/quantization/seed~{seed}/resnet18.pt",
    output:
        "<records>/quantization/seed~{seed}/resnet18.json",
    log:
        "logs/quantize_evaluate_resnet/seed~{seed}.log",
    # Without a GPU each core counts.
    threads: JOBS.cores
    params:
        code=code.of_quantized("quantize_evaluate", "resnet18-cifar", "evaluation"),
        model="resnet18-cifar",
        written=lambda wildcards, output: output[0],
        own=options(TRAINING, "model_width"),


# Timed on the CPU: needs the whole machine and no GPU.
rule quantize_peers:
    input:
        **IMAGES,
        weights="<records>/quantization/seed~{seed}/float32.pt",
    output:
        "<records>/quantization/seed~{seed}/peers.json",
    log:
        "logs/quantize_peers/seed~{seed}.log",
    conda:
        "../workflow/envs/study.yaml"
    threads: timed_threads
    resources:
        **JOBS.timed(gpus=0),
    params:
        code=measuring("quantize_peers"),
        peers=config["quantization"]["peers"],
        calibration=told.calibration(config),
        cpu_threads=config["machine"]["cpu_threads"],
    shell:
        'python "${{SCALING_STUDY_HOME:-.}}"/workflow/scripts/quantize_peers.py --dataset {input.images:q}'
        " --manifest {input.manifest:q} --weights {input.weights:q} --seed {wildcards.seed:q}"
        " {params.calibration} --peers {params.peers}"
        " --threads {params.cpu_threads} --output {output:q} > {log:q} 2>&1"


# Timed on the CPU, too. The ONNX files are for the user; a stored study has only the record.
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
        "../workflow/envs/study.yaml"
    threads: timed_threads
    resources:
        **JOBS.timed(gpus=0),
    params:
        code=code.of_quantized("quantize_export", "tutorial-cnn", "evaluation"),
        model="tutorial-cnn",
        calibration=told.calibration(config),
        own="",
    shell:
        'python "${{SCALING_STUDY_HOME:-.}}"/workflow/scripts/quantize_export.py --model {params.model} {params.own}'
        " --dataset {input.images:q} --manifest {input.manifest:q} --weights {input.weights:q}"
        " --seed {wildcards.seed:q} {params.calibration}"
        " --output {output.record:q} > {log:q} 2>&1"


use rule quantize_export as quantize_export_resnet with:
    input:
        **IMAGES,
        weights="<records>/quantization/seed~{seed}/resnet18.pt",
        evaluated="<records>/quantization/seed~{seed}/resnet18.json",
    output:
        record="<records>/quantization/seed~{seed}/resnet18_export.json",
        networks=multiext(
            "<records>/quantization/seed~{seed}/resnet18-cifar-",
            *("float32.onnx", "int8.onnx", "uint8.onnx"),
        ),
    log:
        "logs/quantize_export_resnet/seed~{seed}.log",
    params:
        code=code.of_quantized("quantize_export", "resnet18-cifar", "evaluation"),
        model="resnet18-cifar",
        own=lambda wildcards, input: options(
            TRAINING | {"evaluated": input.evaluated}, "model_width", "evaluated"
        ),
