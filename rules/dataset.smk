SOURCE = DATASETS.find(config["dataset"]["source"])


rule dataset_fetch:
    output:
        f"{DATASET}/source.json",
    log:
        "logs/dataset_fetch.log",
    localrule: True
    conda:
        "../workflow/envs/study.yaml"
    params:
        code=digest("dataset_fetch", *DATASETS.modules(SOURCE.name)),
        source=SOURCE.name,
        places=options(config["dataset"], "path", "mirror_url"),
        attempts=lookup(dpath="dataset/download_attempts", within=config),
        raw=f"{DATASET}/raw",
    shell:
        "python workflow/scripts/dataset_fetch.py --source {params.source} {params.places}"
        " --attempts {params.attempts} --raw-folder {params.raw}"
        " --output {output} > {log} 2>&1"


rule dataset_prepare:
    input:
        fetched=f"{DATASET}/source.json",
    output:
        images=f"{DATASET}/images.npz",
        manifest=f"{DATASET}/manifest.json",
    log:
        "logs/dataset_prepare.log",
    localrule: True
    conda:
        "../workflow/envs/study.yaml"
    params:
        code=digest("dataset_prepare", *DATASETS.modules(SOURCE.name)),
        options=command_line.options(
            {key: config["dataset"][key] for key in SOURCE.options}
        ),
    shell:
        "python workflow/scripts/dataset_prepare.py --fetched {input.fetched} {params.options}"
        " --output {output.images} --manifest {output.manifest} > {log} 2>&1"
