# Recipes with large batches: one job per global batch, as they share runs. Not timed.
from scaling.config.config import precision, techniques
from scaling.core.records.run import TECHNIQUE_PATTERN
from scaling.large_batches.plan import Study

TECHNIQUES = techniques(config)


rule convergence_train:
    input:
        **IMAGES,
        **CHECKED,
    output:
        expand(
            f"<records>/convergence/{TECHNIQUE_PATTERN}/runs.json",
            remedy=TECHNIQUES,
            allow_missing=True,
        ),
    log:
        "logs/convergence_train/global_batch~{global_batch}.log",
    conda:
        "../workflow/envs/study.yaml"
    threads: config["machine"]["cpu_threads"]
    resources:
        **JOBS.on_gpus(1),
        runtime=JOBS.minutes * len(TECHNIQUES),
    params:
        code=measuring("scaling.large_batches.experiment"),
        files=lambda wildcards, input: as_json(
            images=input.dataset, manifest=input.manifest
        ),
        job=lambda wildcards: as_json(
            study=JOBS.options(Study, "convergence", precision=precision(config)),
            remedies=TECHNIQUES,
            global_batch=int(wildcards.global_batch),
            records=f"{RECORDS}/convergence",
            device=config["device"],
            cpu_threads=config["machine"]["cpu_threads"],
        ),
    shell:
        'python "${{SCALING_STUDY_HOME:-.}}"/workflow/scripts/convergence_train.py {params.job:q} {params.files:q} > {log:q} 2>&1'
