# Remedies for large batches: each at every global batch, its tables and its figures.
from scaling.core.records.convergence import CONVERGENCE_PATTERN
from scaling.config.technique import by_name

REMEDIES = by_name(config["convergence"]["remedies"])


if REMEDIES and not REPLAY:

    # All remedies of a global batch in one job, as they share runs. Not timed: jobs may share the
    # machine, and wait for a GPU each with their images read.
    rule convergence_train:
        input:
            **IMAGES,
            **CHECKED,
        output:
            expand(
                f"<records>/convergence/{CONVERGENCE_PATTERN}/runs.json",
                remedy=REMEDIES,
                allow_missing=True,
            ),
        log:
            "logs/convergence_train/global_batch~{global_batch}.log",
        conda:
            "../workflow/envs/study.yaml"
        threads: config["machine"]["cpu_threads"]
        resources:
            **JOBS.on_gpus(1),
            runtime=JOBS.minutes * len(REMEDIES),
        params:
            code=measuring("convergence_train"),
            remedies=json.dumps(REMEDIES),
            records=subpath(output[0], ancestor=3),
            convergence=options(trainings.of_remedies(config)),
            training=options(TRAINING),
            machine=options(config["machine"], "cpu_threads"),
        shell:
            'python "${{SCALING_STUDY_HOME:-.}}"/workflow/scripts/convergence_train.py --remedies {params.remedies:q}'
            " --global-batches {wildcards.global_batch:q} --dataset {input.images:q}"
            " --manifest {input.manifest:q} {params.convergence} {params.training}"
            " {params.machine} --cache resources/trained --records {params.records}"
            " > {log:q} 2>&1"
