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
            config["recipes"][wildcards.recipe]["engine"],
            wildcards.strategy,
            MODEL["model"],
        ),
        nodes=TIMED["nodes"],
        repeat=lambda wildcards: wildcards.repeat.rpartition("~")[2] or 0,
        training=JOBS.options(RunSpec),
        recipe=lambda wildcards: JOBS.recipe(wildcards.recipe),
    shell:
        # Cells of the same batch size share compiled code.
        "TORCHINDUCTOR_CACHE_DIR=${{TORCHINDUCTOR_CACHE_DIR:-$PWD/resources/compiled}}"
        " TRITON_CACHE_DIR=${{TRITON_CACHE_DIR:-$PWD/resources/compiled/triton}}"
        ' python "${{SCALING_STUDY_HOME:-.}}"/workflow/scripts/train_run.py'
        " --recipe {wildcards.recipe:q} --strategy {wildcards.strategy:q} --gpus {wildcards.gpus:q}"
        " --nodes {params.nodes} --batch-size {wildcards.batch_size:q} --seed {wildcards.seed:q}"
        " --repeat {params.repeat} --dataset {input.images:q} --manifest {input.manifest:q}"
        " {params.training} {params.recipe} --output {output:q} > {log:q} 2>&1"


# Cells of recipes that are the user's own command. An edit of a file that it names repeats them.
if OWN:

    ruleorder: train_command > train_run

    rule train_command:
        input:
            **CHECKED,
        output:
            f"<records>/runs/{grid.RUN_PATTERN}/run.json",
        log:
            f"logs/train_run/{grid.RUN_PATTERN}.log",
        benchmark:
            f"benchmarks/train_command/{grid.RUN_PATTERN}.tsv"
        wildcard_constraints:
            recipe="|".join(OWN),
        priority: JOBS.place
        conda:
            "../workflow/envs/study.yaml"
        threads: JOBS.threads
        resources:
            **TIMED,
        params:
            code=measuring("scaling/launch/own_trainer"),
            files=lambda wildcards: engines.files(
                config["recipes"][wildcards.recipe]["command"]
            ),
            nodes=TIMED["nodes"],
            repeat=lambda wildcards: wildcards.repeat.rpartition("~")[2] or 0,
            training=JOBS.options(CommandOptions),
            recipe=lambda wildcards: JOBS.recipe(wildcards.recipe),
        shell:
            'python "${{SCALING_STUDY_HOME:-.}}"/workflow/scripts/train_run.py'
            " --recipe {wildcards.recipe:q} --strategy {wildcards.strategy:q} --gpus {wildcards.gpus:q}"
            " --nodes {params.nodes} --batch-size {wildcards.batch_size:q} --seed {wildcards.seed:q}"
            " --repeat {params.repeat} {params.training} {params.recipe} --output {output:q} > {log:q} 2>&1"


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
            training=JOBS.options(
                *(RunSpec, "time_to_accuracy"),
                warmup_epochs=1,
                measured_epochs=FULL["epochs"] - 1,
                # As many epochs as were chosen, none to settle.
                warmup_seconds=0.0,
                measured_seconds=0.0,
                max_measured_seconds=0.0,
                micro_batches=1,
                instrumented_iterations=0,
            ),
