localrules:
    plot_epoch_time,
    plot_speedup,
    plot_communication,
    plot_learning,
    plot_quantization_histograms,
    plot_quantization_sizes,
    report_render,


rule plot_epoch_time:
    input:
        timing="<results>/tables/{study}/timing.csv",
    output:
        report(
            "<results>/figures/{study}/epoch_time.svg",
            caption="../report/captions/epoch_time.rst",
            category="Timing",
        ),
    log:
        "<logs>/plot_epoch_time/{study}.log",
    conda:
        "../workflow/envs/study.yaml"
    params:
        code=digest("plot_epoch_time"),
    shell:
        "python workflow/scripts/plot_epoch_time.py --timing {input.timing}"
        " --output {output} > {log} 2>&1"


rule plot_speedup:
    input:
        speedup="<results>/tables/{study}/speedup.csv",
    output:
        report(
            "<results>/figures/{study}/speedup.svg",
            caption="../report/captions/speedup.rst",
            category="Timing",
        ),
    log:
        "<logs>/plot_speedup/{study}.log",
    conda:
        "../workflow/envs/study.yaml"
    params:
        code=digest("plot_speedup"),
    shell:
        "python workflow/scripts/plot_speedup.py --speedup {input.speedup}"
        " --output {output} > {log} 2>&1"


rule plot_communication:
    input:
        communication="<results>/tables/{study}/communication.csv",
    output:
        report(
            "<results>/figures/{study}/communication.svg",
            caption="../report/captions/communication.rst",
            category="Communication",
        ),
    log:
        "<logs>/plot_communication/{study}.log",
    conda:
        "../workflow/envs/study.yaml"
    params:
        code=digest("plot_communication"),
    shell:
        "python workflow/scripts/plot_communication.py --communication {input.communication}"
        " --output {output} > {log} 2>&1"


rule plot_learning:
    input:
        accuracy="<results>/tables/accuracy.csv",
    output:
        report(
            "<results>/figures/{study}/learning.svg",
            caption="../report/captions/learning.rst",
            category="Accuracy",
        ),
    log:
        "<logs>/plot_learning/{study}.log",
    conda:
        "../workflow/envs/study.yaml"
    params:
        code=digest("plot_learning"),
    shell:
        "python workflow/scripts/plot_learning.py --accuracy {input.accuracy}"
        " --output {output} > {log} 2>&1"


rule plot_quantization_histograms:
    input:
        record=[f"<records>/{path}" for path in stored.histogram_records(config)],
    output:
        report(
            "<results>/figures/{study}/quantization_histograms.svg",
            caption="../report/captions/quantization_histograms.rst",
            category="Int8 quantization",
        ),
    log:
        "<logs>/plot_quantization_histograms/{study}.log",
    conda:
        "../workflow/envs/study.yaml"
    params:
        code=digest("plot_quantization_histograms"),
    shell:
        "python workflow/scripts/plot_quantization_histograms.py --record {input.record}"
        " --output {output} > {log} 2>&1"


rule plot_quantization_sizes:
    input:
        quantization="<results>/tables/quantization.csv",
    output:
        report(
            "<results>/figures/{study}/quantization_sizes.svg",
            caption="../report/captions/quantization_sizes.rst",
            category="Int8 quantization",
        ),
    log:
        "<logs>/plot_quantization_sizes/{study}.log",
    conda:
        "../workflow/envs/study.yaml"
    params:
        code=digest("plot_quantization_sizes"),
    shell:
        "python workflow/scripts/plot_quantization_sizes.py --quantization {input.quantization}"
        " --output {output} > {log} 2>&1"


TABLES = [
    *("timing", "speedup", "communication", "bandwidth", "utilization"),
    *("audit", "comparison", "prediction", "cost_model", "startup", "provenance"),
    "device_time",
]
SHARED_TABLES = [
    "accuracy",
    "quantization",
    "quantization_layers",
    "quantization_paired",
    "interconnect",
    "interconnect_fit",
    "peaks",
    *("remedies", "time_to_accuracy"),
]
FIGURES = [
    "epoch_time",
    "speedup",
    "communication",
    "learning",
    "quantization_histograms",
    "comparison",
    *("remedies", "loss_curves"),
    "collectives",
    "quantization_sizes",
]
TEMPLATE = sorted(
    str(path)
    for path in Path("report").rglob("*.*")
    if path.is_file() and "captions" not in path.parts
)


rule report_render:
    input:
        tables=expand(f"<results>/tables/{STUDY}/{{table}}.csv", table=TABLES),
        shared_tables=expand("<results>/tables/{table}.csv", table=SHARED_TABLES),
        topology="<results>/tables/topology.txt",
        claims="<results>/tables/claims.json",
        experiments=expand("<results>/tables/{table}.csv", table=SYNCHRONIZATION_TABLES),
        optional=OPTIONAL_TABLES,
        figures=expand(f"<results>/figures/{STUDY}/{{figure}}.svg", figure=FIGURES),
        manifest=f"{DATASET}/manifest.json",
        template=TEMPLATE,
    output:
        report(
            "<results>/report.html",
            caption="../report/captions/report.rst",
            category="Report",
        ),
    log:
        "<logs>/report_render.log",
    conda:
        "../workflow/envs/study.yaml"
    params:
        code=digest("report_render"),
        partial=PARTIAL,
        side_by_side="--side-by-side" if config["machine"]["share"] else "",
        replayed_from=option("--replayed-from", REPLAY),
        study=STUDY,
        results=subpath(output[0], parent=True),
    shell:
        "python workflow/scripts/report_render.py --study {params.study}"
        " --tables {params.results}/tables/{params.study} --shared-tables {params.results}/tables"
        " --figures {params.results}/figures/{params.study} --manifest {input.manifest}"
        " --claims {input.claims} --template report/report.html.j2 {params.partial} {params.side_by_side}"
        " {params.replayed_from} --output {output} > {log} 2>&1"
