# The figures: rule plot_{name}, script plot.py --figure name, log plot_{name}, as the registry has
# them. A figure is drawn again when its own module or its tables change; one whose tables the study
# does not have is not drawn.
from scaling.figures.registry import FIGURES, STUDY_FIGURES

DRAWN = {
    name: made
    for name, figure in FIGURES.items()
    if (made := [schema.TABLES[t] for t in figure.tables if is_made(schema.TABLES[t])])
}

for name, made in DRAWN.items():

    rule:
        name:
            f"plot_{name}"
        input:
            tables=[
                str(table.path(Path("<results>/tables"), "{study}")) for table in made
            ],
            style="report/figures.mplstyle",
        output:
            report(
                f"<results>/figures/{{study}}/{name}.svg",
                caption=f"../report/captions/{name}.rst",
                category=FIGURES[name].category,
            ),
        log:
            f"<logs>/plot_{name}/{{study}}.log",
        localrule: True
        conda:
            "../workflow/envs/study.yaml"
        params:
            code=digest("plot", FIGURES[name].module),
            figure=name,
        shell:
            "python workflow/scripts/plot.py --figure {params.figure}"
            " --study {wildcards.study:q} --tables {input.tables:q}"
            " --output {output:q} > {log:q} 2>&1"
