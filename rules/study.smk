import json

import yaml


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
    threads: 1 if config["machine"]["share"] else JOBS.cores
    params:
        # A function, as a command in it has braces.
        config=lambda wildcards: yaml.safe_dump(
            json.loads(json.dumps(config)), sort_keys=False
        ),
    shell:
        "printf %s {params.config:q} > {output:q} 2> {log:q}"
