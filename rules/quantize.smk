# The network of the lab's Part B: trained and quantized. Not timed: may share the machine with other
# jobs, but not its GPU.
from scaling.core.records.experiments import VARIANT_PATTERN
from scaling.core.training_options import NetworkTraining

VARIANTS = {
    one["name"]: {key: one[key] for key in one if key not in ("name", "seeds")}
    for one in config["quantization"]["variants"]
}


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
        code=measuring("scaling.quantization.training"),
        job=lambda wildcards, input, output: as_json(
            training=JOBS.options(
                *(NetworkTraining, "quantization"),
                device=config["device"],
                seed=int(wildcards.seed),
                dataset=input.images,
                manifest=input.manifest,
                output=output.weights,
                summary=output.summary,
            )
        ),
    shell:
        'python "${{SCALING_STUDY_HOME:-.}}"/workflow/scripts/quantize.py {params.job:q} > {log:q} 2>&1'


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
        job=lambda wildcards, input: as_json(
            evaluation={
                "calibration_images": config["quantization"]["calibration_images"],
                "device": config["device"],
                "seed": int(wildcards.seed),
                "dataset": input.images,
                "manifest": input.manifest,
                "weights": input.weights,
                "variants": VARIANTS,
                "output": f"{RECORDS}/quantization/seed~{wildcards.seed}",
            }
        ),
