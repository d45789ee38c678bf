from scaling.config.config import images_needed
from scaling.registry.entries import DATASETS

SOURCE = DATASETS.find(config["dataset"]["source"])


rule dataset_prepare:
    output:
        images=f"{DATASET}/images.npz",
        manifest=f"{DATASET}/manifest.json",
    log:
        "logs/dataset_prepare.log",
    priority: JOBS.first
    localrule: True
    conda:
        "../workflow/envs/study.yaml"
    params:
        code=measuring("dataset_prepare", *DATASETS.modules(SOURCE.name)),
        job=lambda wildcards, output: as_json(
            request={
                "raw_folder": f"{DATASET}/raw",
                **{
                    key: config["dataset"][key]
                    for key in ("source", "image_size", *SOURCE.options)
                },
            },
            output=output.images,
            manifest=output.manifest,
            needed=images_needed(config),
        ),
    shell:
        'python "${{SCALING_STUDY_HOME:-.}}"/workflow/scripts/dataset_prepare.py {params.job:q} > {log:q} 2>&1'
