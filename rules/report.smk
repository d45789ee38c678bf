TEMPLATE = expand(
    "{ours}report/{name}",
    ours=OURS,
    name="report.html.j2 answers.md.j2 macros.html.j2 style.css".split(),
)


rule report_render:
    input:
        tables=MADE.tables(),
        topology="<results>/tables/topology.txt" if MADE.records["runs"] else [],
        records=MADE.runs,
        claims="<results>/tables/claims.json",
        figures=[f"<results>/figures/{STUDY}/{name}.svg" for name in DRAWN],
        manifest=f"{DATASET}/manifest.json",
        template=TEMPLATE,
    output:
        page=report(
            "<results>/report.html",
            caption="../report/captions/report.rst",
            category="Report",
        ),
        answers="<results>/answers.md",
    log:
        "<logs>/report_render.log",
    localrule: True
    conda:
        "../workflow/envs/study.yaml"
    params:
        code=digest("report_render"),
        remarks=options(
            {
                "partial": config["partial"],
                "side_by_side": config["machine"]["share"],
                "replayed_from": None if REPLAY == stored.RESULTS else REPLAY,
            }
        ),
        study=STUDY,
        results=subpath(output[0], parent=True),
        runs=f"{RECORDS}/runs",
    shell:
        'python "${{SCALING_STUDY_HOME:-.}}"/workflow/scripts/report_render.py --study {params.study:q}'
        " --tables {input.tables:q} --figures {input.figures:q}"
        " --topology {input.topology:q} --results {params.results:q}"
        " --manifest {input.manifest:q} --runs {params.runs:q} --template {input.template[0]:q}"
        " {params.remarks} --output {output.page:q} --answers {output.answers:q} > {log:q} 2>&1"
