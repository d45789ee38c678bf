# The figures whose tables the study has, drawn in one job.
from scaling.figures import FIGURES

DRAWN = {name: made for name in FIGURES if (made := MADE.tables(FIGURES[name].tables))}


rule figures_draw:
    input:
        tables=sorted({path for made in DRAWN.values() for path in made}),
        style=f"{OURS}report/figures.mplstyle",
    output:
        [
            report(
                f"<results>/figures/{STUDY}/{name}.svg",
                caption="../report/captions/figures.rst",
                category=FIGURES[name].category,
            )
            for name in DRAWN
        ],
    log:
        "<logs>/figures_draw.log",
    localrule: True
    conda:
        "../workflow/envs/study.yaml"
    params:
        code=digest("figures_draw"),
        figures=list(DRAWN),
        folder=subpath(output[0], parent=True),
    shell:
        'python "${{SCALING_STUDY_HOME:-.}}"/workflow/scripts/figures_draw.py --figures {params.figures:q}'
        " --tables {input.tables:q} --output {params.folder:q}"
        " > {log:q} 2>&1"
