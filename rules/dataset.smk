from scaling.registry.entries import DATASETS


rule dataset_prepare:
    output:
        output=f"{DATASET}/images.npz",
        manifest=f"{DATASET}/manifest.json",
    log:
        "logs/dataset_prepare.log",
    priority: JOBS.first
    localrule: True
    conda:
        "../workflow/envs/study.yaml"
    params:
        **JOBS.dataset(),
        code=measuring(
            "dataset_prepare", *DATASETS.modules(config["dataset"]["source"])
        ),
    shell:
        'python "${{SCALING_STUDY_HOME:-.}}"/workflow/scripts/dataset_prepare.py {params.job:q} {params.files:q} > {log:q} 2>&1'
