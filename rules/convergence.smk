# Remedies for large batches: each at every global batch, its tables and its figures.
from scaling.core.records import CONVERGENCE_PATTERN
from scaling.config.technique import by_name

REMEDIES = by_name(config["convergence"]["remedies"])
CONVERGENCE = [str(Path(RECORDS, path)) for path in stored.convergence_records(config)]


if not REPLAY:

    # Not timed: jobs may share the machine, and wait for a GPU each with their images read.
    rule convergence_train:
        input:
            **CHECKED,
            images=ancient(f"{DATASET}/images.npz"),
            manifest=f"{DATASET}/manifest.json",
        output:
            f"<records>/convergence/{CONVERGENCE_PATTERN}/runs.json",
        log:
            f"logs/convergence_train/{CONVERGENCE_PATTERN}.log",
        conda:
            "../workflow/envs/study.yaml"
        threads: config["machine"]["cpu_threads"]
        resources:
            gpu=1,
            runtime=TIMED["runtime"],
        params:
            code=digest("convergence_train"),
            remedy=lambda wildcards: json.dumps(
                {wildcards.remedy: REMEDIES[wildcards.remedy]}
            ),
            records=subpath(output[0], ancestor=3),
            convergence=options(
                config["convergence"],
                *("reference_batch", "gpus", "epochs", "max_epochs", "seeds"),
                *("factors", "precision", "train_images"),
            ),
            training=options(TRAINING),
            machine=options(config["machine"], "cpu_threads"),
        shell:
            "python workflow/scripts/convergence_train.py --remedies {params.remedy:q}"
            " --global-batches {wildcards.global_batch} --dataset {input.images}"
            " --manifest {input.manifest} {params.convergence} {params.training}"
            " {params.machine} --records {params.records} > {log} 2>&1"
