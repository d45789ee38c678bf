rule knobs_measure:
    input:
        **IMAGES,
        **CHECKED,
    output:
        f"<records>/{stored.KNOBS}",
    log:
        "logs/knobs_measure/gpus~{gpus}/batch_size~{batch_size}.log",
    conda:
        "../workflow/envs/study.yaml"
    threads: timed_threads
    resources:
        **TIMED,
    params:
        code=measuring("knobs_measure", *models.code(MODEL["model"])),
        nodes=TIMED["nodes"],
        recipe=options({"recipe_options": grid.recipe_options(config, "plain")}),
        knobs=json.dumps(Knobs.of(config["knobs"]).what),
        training=options(TRAINING | MODEL),
        machine=options(config["machine"], *LIMITS),
    shell:
        'python "${{SCALING_STUDY_HOME:-.}}"/workflow/scripts/knobs_measure.py --gpus {wildcards.gpus:q} --nodes {params.nodes}'
        " --batch-size {wildcards.batch_size:q} --dataset {input.images:q}"
        " --manifest {input.manifest:q} {params.recipe} --knobs {params.knobs:q}"
        " {params.training} {params.machine} --output {output:q} > {log:q} 2>&1"
