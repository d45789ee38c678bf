from scaling.figures import FIGURES

DRAWN = [name for name in FIGURES if FILES.tables(FIGURES[name].tables)]
TEMPLATE = expand(
    "{ours}report/{name}",
    ours=OURS,
    name="report.html.j2 answers.md.j2 macros.html.j2 style.css".split(),
)


rule report_render:
    input:
        tables=FILES.tables(),
        topology=["<results>/tables/topology.txt"][:HAS_RUNS],
        records=FILES.runs,
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
        job=lambda wildcards, input, output: as_json(
            study=STUDY,
            tables=input.tables,
            figures=DRAWN,
            topology=input.topology,
            results=RESULTS,
            manifest=input.manifest,
            runs=f"{RECORDS}/runs",
            template=input.template[0],
            partial=config["partial"],
            side_by_side=config["machine"]["share"],
            replayed_from=None if REPLAY == stored.RESULTS else REPLAY,
            output=output.page,
            answers=output.answers,
        ),
    shell:
        'python "${{SCALING_STUDY_HOME:-.}}"/workflow/scripts/report_render.py {params.job:q} > {log:q} 2>&1'


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
