# Tables (scaling/tables/schema.py lists them), answers to the lab's questions, figures and report.
from scaling.figures import FIGURES

HAS_RUNS = bool(FILES.records["runs"])
RECORDED = {kind: FILES.records[kind] for kind in stored.KINDS if kind != "runs"}
RECORDED["machine"] = [
    path for path in JOBS.machine_checks() if not REPLAY or Path(path).exists()
] * HAS_RUNS
DRAWN = [name for name in FIGURES if FILES.tables(FIGURES[name])]
# Keys of the configuration that tables depend on.
TABULATED = ["study", "parts", "dataset", "grid", "recipes", "cost"]
TABULATED += ["convergence", "time_to_accuracy"]
# Forms of the course, in the order of whose questions the answers are written, too.
FORMS = stored.read_config(Path(f"{OURS}report/forms.yaml"))
TEMPLATE = sorted(map(str, Path(f"{OURS}report").glob("*.*")))


rule tables_make:
    input:
        **RECORDED,
        records=FILES.records["runs"],
    output:
        tables=FILES.tables(),
        of_runs=["<results>/tables/topology.txt", "<results>/results.json"] * HAS_RUNS,
        claims="<results>/tables/claims.json",
    log:
        "<logs>/tables_make.log",
    localrule: True
    conda:
        "../workflow/envs/report.yaml"
    params:
        code=digest("tables_make"),
        job=lambda wildcards: as_json(
            records=RECORDED,
            config={key: config[key] for key in TABULATED},
            tables=f"{RESULTS}/tables",
            runs=f"{RECORDS}/runs" if HAS_RUNS else None,
        ),
    shell:
        'python "${{SCALING_STUDY_HOME:-.}}"/workflow/scripts/tables_make.py {params.job:q} > {log:q} 2>&1'


rule report_render:
    input:
        tables=FILES.tables(),
        topology=["<results>/tables/topology.txt"][:HAS_RUNS],
        records=FILES.records["runs"],
        claims="<results>/tables/claims.json",
        manifest=f"{DATASET}/manifest.json",
        template=TEMPLATE,
    output:
        "<results>/report.html",
        "<results>/answers.md",
        expand("<results>/answers-{form}.md", form=FORMS),
        figures=expand(f"<results>/figures/{STUDY}/{{name}}.svg", name=DRAWN),
    log:
        "<logs>/report_render.log",
    localrule: True
    conda:
        "../workflow/envs/report.yaml"
    params:
        code=digest("report_render"),
        job=lambda wildcards: as_json(
            study=STUDY,
            figures=DRAWN,
            results=RESULTS,
            runs=f"{RECORDS}/runs",
            side_by_side=config["machine"]["share"],
            replayed_from=None if REPLAY == stored.RESULTS else REPLAY,
        ),
        files=lambda wildcards, input: as_json(
            tables=input.tables, manifest=input.manifest
        ),
    shell:
        'python "${{SCALING_STUDY_HOME:-.}}"/workflow/scripts/report_render.py {params.job:q} {params.files:q} > {log:q} 2>&1'


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
        "../workflow/envs/report.yaml"
    threads: JOBS.threads
    params:
        # A function, as a command in it has braces.
        config=lambda wildcards: yaml.safe_dump(
            json.loads(json.dumps(config)), sort_keys=False
        ),
    shell:
        "printf %s {params.config:q} > {output:q} 2> {log:q}"
