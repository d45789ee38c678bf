# Runs of the grid, and trainings for accuracies.
from scaling.config.config import techniques
from scaling.core.records.run import TECHNIQUE_PATTERN
from scaling.large_batches.plan import Study
from scaling.launch.run_spec import CommandOptions, RunSpec

# Trainings to an accuracy have as many epochs as were chosen, none to settle.
WHOLE = {"warmup_epochs": 1, "micro_batches": 1, "instrumented_iterations": 0}
WHOLE |= {"warmup_seconds": 0.0, "measured_seconds": 0.0, "max_measured_seconds": 0.0}


rule train_run:
    input:
        **IMAGES,
        **CHECKED,
    output:
        f"<records>/runs/{grid.RUN_PATTERN}/run.json",
    log:
        f"logs/train_run/{grid.RUN_PATTERN}.log",
    # Recipes in turns, so that drift of the machine affects all alike.
    priority: JOBS.place
    conda:
        "../workflow/envs/study.yaml"
    threads: JOBS.threads
    resources:
        **TIMED,
    params:
        **JOBS.run(RunSpec),
        code=JOBS.code_of_cell,
    shell:
        'python "${{SCALING_STUDY_HOME:-.}}"/workflow/scripts/train_run.py {params.job:q} {params.files:q} > {log:q} 2>&1'


# Cells of recipes that are the user's own command. An edit of a file that it names repeats them.
if JOBS.commands:

    ruleorder: train_command > train_run

    use rule train_run as train_command with:
        input:
            **CHECKED,
        wildcard_constraints:
            recipe="|".join(JOBS.commands),
        params:
            **JOBS.run(CommandOptions),
            code=JOBS.code_of_timed("scaling.launch.own_trainer"),
            scripts=lambda wildcards: engines.files(
                config["recipes"][wildcards.recipe]["command"]
            ),


if "time_to_accuracy" in config["parts"]:

    use rule train_run as train_to_accuracy with:
        output:
            f"<records>/to_accuracy/{grid.RUN_PATTERN}/run.json",
        log:
            f"logs/train_to_accuracy/{grid.RUN_PATTERN}.log",
        priority: 0
        params:
            **JOBS.run(
                *(RunSpec, "time_to_accuracy"),
                **WHOLE,
                measured_epochs=config["time_to_accuracy"]["epochs"] - 1,
            ),


# Recipes with large batches: one job per technique and global batch. Not timed.
if "accuracy" in config["parts"]:

    TECHNIQUES = techniques(config)
    # All their recipes have the same.
    FIRST = config["recipes"][config["convergence"]["recipes"][0]["recipe"]]
    PRECISION = FIRST.get("precision", "float32")

    rule convergence_train:
        input:
            **IMAGES,
            **CHECKED,
        output:
            f"<records>/convergence/{TECHNIQUE_PATTERN}/runs.json",
        log:
            f"logs/convergence_train/{TECHNIQUE_PATTERN}.log",
        conda:
            "../workflow/envs/study.yaml"
        threads: config["machine"]["cpu_threads"]
        resources:
            **JOBS.timed(1, ["gpu", "gres"]),
            # A technique is trained with several learning rates, then with each seed.
            runtime=JOBS.minutes * len(config["convergence"]["seeds"]),
        params:
            code=measuring("scaling.large_batches.experiment"),
            files=JOBS.run(RunSpec)["files"],
            job=lambda wildcards: as_json(
                study=JOBS.options(Study, "convergence", precision=PRECISION),
                remedy=wildcards.remedy,
                technique=TECHNIQUES[wildcards.remedy],
                global_batch=int(wildcards.global_batch),
                device=config["device"],
                cpu_threads=config["machine"]["cpu_threads"],
            ),
        shell:
            'python "${{SCALING_STUDY_HOME:-.}}"/workflow/scripts/convergence_train.py {params.job:q} {params.files:q} > {log:q} 2>&1'
