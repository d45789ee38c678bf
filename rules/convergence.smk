# Remedies for large batches: each at every global batch, its tables and its figures.
from scaling.core.records import CONVERGENCE_PATTERN
from scaling.config.technique import by_name


localrules:
    tables_convergence,
    tables_time_to_accuracy,


REMEDIES = by_name(config["convergence"]["remedies"])
CONVERGENCE = [str(Path(RECORDS, path)) for path in stored.convergence_records(config)]


if not REPLAY:

    # Not timed: jobs may share the machine, and wait for a GPU each with their images read.
    rule convergence_train:
        input:
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
            device=lookup(dpath="device", within=config),
            model_width=lookup(dpath="model/width", within=config),
            convergence=options(
                config["convergence"],
                *("reference_batch", "gpus", "epochs", "max_epochs", "seeds"),
                *("factors", "precision", "train_images"),
            ),
            training=options(config["training"], *TRAINING_KEYS),
            machine=options(config["machine"], "cpu_threads"),
        shell:
            "python workflow/scripts/convergence_train.py --remedies {params.remedy:q}"
            " --global-batches {wildcards.global_batch} --dataset {input.images}"
            " --manifest {input.manifest} --device {params.device}"
            " --model-width {params.model_width} {params.convergence} {params.training}"
            " {params.machine} --records {params.records} > {log} 2>&1"


rule tables_convergence:
    input:
        records=lambda wildcards: records_there(CONVERGENCE),
    output:
        runs="<results>/tables/convergence.csv",
        epochs="<results>/tables/convergence_epochs.csv",
        curves="<results>/tables/loss_curves.csv",
        remedies="<results>/tables/remedies.csv",
    log:
        "<logs>/tables_convergence.log",
    conda:
        "../workflow/envs/study.yaml"
    params:
        code=digest("tables_convergence"),
        margin=lookup(dpath="convergence/accuracy_margin", within=config),
    shell:
        "python workflow/scripts/tables_convergence.py --records {input.records}"
        " --output {output.runs} --epochs {output.epochs} --curves {output.curves}"
        " --remedies {output.remedies} --margin {params.margin} > {log} 2>&1"


rule tables_time_to_accuracy:
    input:
        runs="<results>/tables/convergence.csv",
        epochs="<results>/tables/convergence_epochs.csv",
        timing=f"<results>/tables/{STUDY}/timing.csv",
    output:
        "<results>/tables/time_to_accuracy.csv",
    log:
        "<logs>/tables_time_to_accuracy.log",
    conda:
        "../workflow/envs/study.yaml"
    params:
        code=digest("tables_time_to_accuracy"),
        margin=lookup(dpath="convergence/accuracy_margin", within=config),
    shell:
        "python workflow/scripts/tables_time_to_accuracy.py --runs {input.runs}"
        " --epochs {input.epochs} --timing {input.timing} --margin {params.margin}"
        " --output {output} > {log} 2>&1"
