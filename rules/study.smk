# No rule reads its output, so the whole configuration may be its parameter.
rule study_config:
    output:
        "<results>/config.yaml",
    log:
        "<logs>/study_config.log",
    # With all cores: jobs that are not timed would otherwise start in parallel, before the grid's cells.
    priority: JOBS.first
    localrule: True
    conda:
        "../workflow/envs/study.yaml"
    threads: JOBS.cores
    params:
        code=digest("study_config"),
        # A function, as a command in it has braces.
        config=lambda wildcards: json.dumps(config),
    shell:
        'python "${{SCALING_STUDY_HOME:-.}}"/workflow/scripts/study_config.py --config {params.config:q}'
        " --output {output:q} > {log:q} 2>&1"
