from scaling.figures import FIGURES

DRAWN = [name for name in FIGURES if MADE.tables(FIGURES[name].tables)]
TEMPLATE = expand(
    "{ours}report/{name}",
    ours=OURS,
    name="report.html.j2 answers.md.j2 macros.html.j2 style.css".split(),
)


rule report_render:
    input:
        tables=MADE.tables(),
        topology=["<results>/tables/topology.txt"][:HAS_RUNS],
        records=MADE.runs,
        claims="<results>/tables/claims.json",
        style=f"{OURS}report/figures.mplstyle",
        manifest=f"{DATASET}/manifest.json",
        template=TEMPLATE,
    output:
        page=report(
            "<results>/report.html",
            caption="../report/captions/report.rst",
            category="Report",
        ),
        answers="<results>/answers.md",
        figures=[
            report(
                f"<results>/figures/{STUDY}/{name}.svg",
                caption="../report/captions/figures.rst",
                category=FIGURES[name].category,
            )
            for name in DRAWN
        ],
    log:
        "<logs>/report_render.log",
    localrule: True
    conda:
        "../workflow/envs/study.yaml"
    params:
        code=digest("report_render"),
        figures=DRAWN,
        remarks=options(
            {
                "partial": config["partial"],
                "side_by_side": config["machine"]["share"],
                "replayed_from": None if REPLAY == stored.RESULTS else REPLAY,
            }
        ),
        study=STUDY,
        results=subpath(output.page, parent=True),
        runs=f"{RECORDS}/runs",
    shell:
        'python "${{SCALING_STUDY_HOME:-.}}"/workflow/scripts/report_render.py --study {params.study:q}'
        " --tables {input.tables:q} --figures {params.figures:q}"
        " --topology {input.topology:q} --results {params.results:q}"
        " --manifest {input.manifest:q} --runs {params.runs:q} --template {input.template[0]:q}"
        " {params.remarks} --output {output.page:q} --answers {output.answers:q} > {log:q} 2>&1"
