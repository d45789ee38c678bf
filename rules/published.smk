# Published studies: from what they print to the tables that measured ones have (rules/tables.smk).
rule published_render:
    input:
        sources=PUBLISHED.files(),
        networks=f"{OURS}studies/published/lab_networks.csv",
        texts=[f"{OURS}report/mistakes.yaml", f"{OURS}report/formulas.yaml"],
        figure="<results>/figures/published/comparison.svg",
        template=f"{OURS}report/published.html.j2",
        shared=TEMPLATE,
    output:
        report(
            "<results>/published.html",
            caption="../report/captions/published.rst",
            category="Report",
        ),
    log:
        "<logs>/published_render.log",
    localrule: True
    conda:
        "../workflow/envs/study.yaml"
    params:
        code=digest("published_render"),
        folders=PUBLISHED.all,
    shell:
        'python "${{SCALING_STUDY_HOME:-.}}"/workflow/scripts/published_render.py --folders {params.folders:q}'
        " --networks {input.networks:q}"
        " --figure {input.figure:q} --template {input.template:q} --output {output:q}"
        " > {log:q} 2>&1"
