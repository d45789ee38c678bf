from scaling.launch.run_spec import CommandOptions, RunSpec


rule train_run:
    input:
        **IMAGES,
        **CHECKED,
    output:
        f"<records>/runs/{grid.RUN_PATTERN}/run.json",
    log:
        f"logs/train_run/{grid.RUN_PATTERN}.log",
    benchmark:
        f"benchmarks/train_run/{grid.RUN_PATTERN}.tsv"
    # In the grid's order, so that cells reuse compiled code of earlier ones.
    priority: JOBS.place
    conda:
        "../workflow/envs/study.yaml"
    threads: JOBS.threads
    resources:
        **TIMED,
    params:
        code=lambda wildcards: jobs.of_cell(
            *(config["recipes"][wildcards.recipe]["engine"], wildcards.strategy, MODEL)
        ),
        job=lambda wildcards, input, output: as_json(
            spec=JOBS.run(RunSpec, wildcards),
            images=input.images,
            manifest=input.manifest,
            output=output[0],
        ),
    shell:
        'python "${{SCALING_STUDY_HOME:-.}}"/workflow/scripts/train_run.py {params.job:q} > {log:q} 2>&1'


# Cells of recipes that are the user's own command. An edit of a file that it names repeats them.
if OWN:

    ruleorder: train_command > train_run

    use rule train_run as train_command with:
        input:
            **CHECKED,
        benchmark:
            f"benchmarks/train_command/{grid.RUN_PATTERN}.tsv"
        wildcard_constraints:
            recipe="|".join(OWN),
        params:
            code=measuring("scaling.launch.own_trainer"),
            files=lambda wildcards: engines.files(
                config["recipes"][wildcards.recipe]["command"]
            ),
            job=lambda wildcards, output: as_json(
                spec=JOBS.run(CommandOptions, wildcards), output=output[0]
            ),


# Trainings to an accuracy.
FULL = config["time_to_accuracy"]
if FULL["gpus"]:

    use rule train_run as train_to_accuracy with:
        output:
            f"<records>/to_accuracy/{grid.RUN_PATTERN}/run.json",
        log:
            f"logs/train_to_accuracy/{grid.RUN_PATTERN}.log",
        benchmark:
            f"benchmarks/train_to_accuracy/{grid.RUN_PATTERN}.tsv"
        priority: 0
        params:
            job=lambda wildcards, input, output: as_json(
                spec=JOBS.run(
                    *(RunSpec, wildcards, "time_to_accuracy"),
                    warmup_epochs=1,
                    measured_epochs=FULL["epochs"] - 1,
                    # As many epochs as were chosen, none to settle.
                    warmup_seconds=0.0,
                    measured_seconds=0.0,
                    max_measured_seconds=0.0,
                    micro_batches=1,
                    instrumented_iterations=0,
                ),
                images=input.images,
                manifest=input.manifest,
                output=output[0],
            ),
