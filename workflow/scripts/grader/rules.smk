# The page of published studies: from what they print, without training.

GRADER = f"{OURS}workflow/scripts/grader"
PRINTED = sorted(Path(f"{OURS}studies").glob("*/timings.csv"))


rule published:
    input:
        sources=[
            str(path) for times in PRINTED for path in sorted(times.parent.glob("*.*"))
        ],
        texts=expand(f"{GRADER}/{{name}}.yaml", name=["slips", "formulas", "words"]),
        template=f"{GRADER}/published.html.j2",
        shared=TEMPLATE,
    output:
        page=report(
            "<results>/published.html", caption="published.rst", category="Report"
        ),
    log:
        "<logs>/published.log",
    localrule: True
    conda:
        "../../envs/report.yaml"
    params:
        code=digest("grader.pages"),
        job=lambda wildcards: as_json(folders=[times.parent for times in PRINTED]),
        files=lambda wildcards, output: as_json(output=output.page),
    shell:
        'PYTHONPATH="${{SCALING_STUDY_HOME:-.}}"/workflow/scripts python -m grader.pages {params.job:q} {params.files:q} > {log:q} 2>&1'
