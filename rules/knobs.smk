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
        code=digest("knobs_measure", *models.code(MODEL["model"])),
        nodes=TIMED["nodes"],
        recipe=options({"recipe_options": config["recipes"]["course"]}),
        knobs=json.dumps(Knobs.of(config["knobs"]).what),
        training=options(TRAINING | MODEL),
        machine=options(config["machine"], *LIMITS),
    shell:
        "python workflow/scripts/knobs_measure.py --gpus {wildcards.gpus} --nodes {params.nodes}"
        " --batch-size {wildcards.batch_size} --dataset {input.images}"
        " --manifest {input.manifest} {params.recipe} --knobs {params.knobs:q}"
        " {params.training} {params.machine} --output {output} > {log} 2>&1"
