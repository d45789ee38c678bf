# The figures: rule plot_{name}, script plot.py --figure name, log plot_{name}, as the registry has
# them. A figure is drawn again when its own module or its tables change.
from scaling.figures.registry import FIGURES, STUDY_FIGURES

for name, figure in FIGURES.items():

    rule:
        name:
            f"plot_{name}"
        input:
            tables=[
                str(schema.TABLES[table].path(Path("<results>/tables"), "{study}"))
                for table in figure.tables
            ],
            style="report/figures.mplstyle",
        output:
            report(
                f"<results>/figures/{{study}}/{name}.svg",
                caption=f"../report/captions/{name}.rst",
                category=figure.category,
            ),
        log:
            f"<logs>/plot_{name}/{{study}}.log",
        localrule: True
        conda:
            "../workflow/envs/study.yaml"
        params:
            code=digest("plot", figure.module),
            figure=name,
            results=subpath(output[0], ancestor=3),
        shell:
            "python workflow/scripts/plot.py --figure {params.figure}"
            " --study {wildcards.study:q} --tables {params.results:q}/tables"
            " --output {output:q} > {log:q} 2>&1"
