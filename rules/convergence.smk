# Recipes with large batches: one job per global batch, as they share runs. Not timed: jobs may share the
# machine, and read their images before they wait for a GPU.
from scaling.config.recipes import precision, techniques
from scaling.core.records.run import TECHNIQUE_PATTERN
from scaling.core.training_options import LargeBatches

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
        code=measuring("convergence_train"),
        remedies=json.dumps(TECHNIQUES),
        records=subpath(output[0], ancestor=3),
        options=JOBS.options(
            LargeBatches,
            "convergence",
            **TRAINING,
            precision=precision(config),
            cpu_threads=config["machine"]["cpu_threads"],
        ),
    shell:
        'python "${{SCALING_STUDY_HOME:-.}}"/workflow/scripts/convergence_train.py --remedies {params.remedies:q}'
        " --global-batches {wildcards.global_batch:q} --dataset {input.images:q}"
        " --manifest {input.manifest:q} {params.options}"
        " --cache resources/trained --records {params.records} > {log:q} 2>&1"
