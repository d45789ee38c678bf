# The network of the lab's Part B, trained and quantized. Not timed, but alone on its GPU.
from scaling.core.records.kind import VARIANT_PATTERN
from scaling.core.training_options import NetworkTraining

VARIANTS = {
    one["name"]: {key: one[key] for key in one if key not in ("name", "seeds")}
    for one in config["quantization"]["variants"]
}
OF_SEED = lambda wildcards: {"device": config["device"], "seed": int(wildcards.seed)}


rule quantize_train:
    input:
        **IMAGES,
    output:
        output="<records>/quantization/seed~{seed}/float32.pt",
    log:
        "logs/quantize_train/seed~{seed}.log",
    conda:
        "../workflow/envs/study.yaml"
    params:
        code=measuring("scaling.quantization.training"),
        job=lambda wildcards: as_json(
            training=JOBS.options(
                NetworkTraining, "quantization", **OF_SEED(wildcards)
            )
        ),
        files=lambda wildcards, input, output: as_json(training={**input, **output}),
    shell:
        'python "${{SCALING_STUDY_HOME:-.}}"/workflow/scripts/quantize.py {params.job:q} {params.files:q} > {log:q} 2>&1'


# One job for all variants of a network, which share it and its images.
use rule quantize_train as quantize_evaluate with:
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
    params:
        code=measuring("scaling.quantization.variant"),
        job=lambda wildcards: as_json(
            evaluation=OF_SEED(wildcards)
            | {
                "calibration_images": config["quantization"]["calibration_images"],
                "variants": VARIANTS,
            }
        ),
        files=lambda wildcards, input, output: as_json(
            evaluation={**input, "output": Path(output[0]).parents[1]}
        ),
