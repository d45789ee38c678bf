from scaling.registry.entries import DATASETS


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
        code=measuring(
            "dataset_prepare", *DATASETS.modules(config["dataset"]["source"])
        ),
        options=options(
            config["dataset"],
            *("source", "image_size"),
            *DATASETS.find(config["dataset"]["source"]).options,
        ),
        raw=f"{DATASET}/raw",
    shell:
        'python "${{SCALING_STUDY_HOME:-.}}"/workflow/scripts/dataset_prepare.py {params.options} --raw-folder {params.raw:q}'
        " --output {output.images:q} --manifest {output.manifest:q} > {log:q} 2>&1"
