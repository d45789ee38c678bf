# Published studies: from what they print to the tables that measured ones have (rules/tables.smk).
localrules:
    published_timing,
    published_printed,
    tables_comparison,
    published_render,


rule published_timing:
    input:
        sources=published_sources,
    output:
        "<results>/tables/{study}/timing.csv",
    log:
        "<logs>/published_timing/{study}.log",
    wildcard_constraints:
        study=f"(?!{re.escape(STUDY)}/)[^/]+",
    conda:
        "../workflow/envs/study.yaml"
    params:
        code=digest("published_timing"),
        folder=published_folder,
        train_images=CIFAR10_TRAIN_IMAGES,
    shell:
        "python workflow/scripts/published_timing.py --folder {params.folder}"
        " --study {wildcards.study} --train-images {params.train_images}"
        " --output {output} > {log} 2>&1"


rule published_printed:
    input:
        sources=published_sources,
        timing="<results>/tables/{study}/timing.csv",
        speedup="<results>/tables/{study}/speedup.csv",
        communication="<results>/tables/{study}/communication.csv",
        bandwidth="<results>/tables/{study}/bandwidth.csv",
    output:
        "<results>/tables/{study}/printed.csv",
    log:
        "<logs>/published_printed/{study}.log",
    conda:
        "../workflow/envs/study.yaml"
    params:
        code=digest("published_printed"),
        folder=published_folder,
    shell:
        "python workflow/scripts/published_printed.py --folder {params.folder}"
        " --study {wildcards.study} --timing {input.timing} --speedup {input.speedup}"
        " --communication {input.communication} --bandwidth {input.bandwidth}"
        " --output {output} > {log} 2>&1"


rule tables_comparison:
    input:
        tables=compared("timing", "speedup", "bandwidth"),
        provenance=measured(f"{RESULTS}/tables/{STUDY}/provenance.csv"),
        sources=published_files(),
    output:
        "<results>/tables/{study}/comparison.csv",
    log:
        "<logs>/tables_comparison/{study}.log",
    conda:
        "../workflow/envs/study.yaml"
    params:
        code=digest("tables_comparison"),
        tables=lambda _, output: Path(output[0]).parents[1],
        measured=lambda wildcards: option(
            "--measured", STUDY if wildcards.study == STUDY else None
        ),
        folders=published_folders(),
    shell:
        "python workflow/scripts/tables_comparison.py --tables {params.tables}"
        " {params.measured} --folders {params.folders} --output {output} > {log} 2>&1"


rule published_render:
    input:
        tables=compared(
            *("timing", "speedup", "communication", "bandwidth", "printed", "audit"),
            *("prediction", "cost_model"),
        ),
        sources=published_files(),
        figure="<results>/figures/published/comparison.svg",
        template=TEMPLATE,
    output:
        report(
            "<results>/published.html",
            caption="../report/captions/published.rst",
            category="Report",
        ),
    log:
        "<logs>/published_render.log",
    conda:
        "../workflow/envs/study.yaml"
    params:
        code=digest("published_render"),
        folders=published_folders(),
        tables=lambda _, output: Path(output[0]).parent / "tables",
    shell:
        "python workflow/scripts/published_render.py --folders {params.folders}"
        " --tables {params.tables} --figure {input.figure}"
        " --template report/published.html.j2 --output {output} > {log} 2>&1"
