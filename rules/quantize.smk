# The network of the lab's Part B: trained and quantized.
from scaling.core.records.experiments import VARIANT_PATTERN
from scaling.core.training_options import NetworkTraining

VARIANTS = {
    one["name"]: {key: one[key] for key in one if key not in ("name", "seeds")}
    for one in config["quantization"]["variants"]
}


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
        code=measuring("quantize_train"),
        training=JOBS.options(NetworkTraining, "quantization", device=config["device"]),
    shell:
        'python "${{SCALING_STUDY_HOME:-.}}"/workflow/scripts/quantize_train.py {params.training}'
        " --dataset {input.images:q} --manifest {input.manifest:q} --seed {wildcards.seed:q}"
        " --output {output.weights:q} --summary {output.summary:q} > {log:q} 2>&1"


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
        code=measuring("quantize_evaluate"),
        device=config["device"],
        calibration=options(config["quantization"], "calibration_images"),
        written=subpath(output[0], ancestor=2),
        own=options({"variants": VARIANTS}),
    shell:
        'python "${{SCALING_STUDY_HOME:-.}}"/workflow/scripts/quantize_evaluate.py --dataset {input.images:q}'
        " --manifest {input.manifest:q} --weights {input.weights:q} --seed {wildcards.seed:q} {params.calibration}"
        " --device {params.device} {params.own} --output {params.written:q} > {log:q} 2>&1"
