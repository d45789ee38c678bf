localrules:
    study_config,
    grid_cells,
    tables_timing,
    tables_speedup,
    tables_communication,
    tables_bandwidth,
    tables_audit,
    tables_accuracy,
    tables_provenance,
    tables_readings,
    tables_startup,
    tables_interconnect,


PARTIAL = "--partial" if config["partial"] else ""
RUN_RECORDS = f"{RECORDS}/runs"
MULTI_GPU = [gpus for gpus in config["grid"]["gpus"] if gpus > 1]


# Nothing here reads its output, so the whole configuration may be its parameter.
rule study_config:
    output:
        "<results>/config.yaml",
    log:
        "<logs>/study_config.log",
    conda:
        "../workflow/envs/study.yaml"
    params:
        code=digest("study_config"),
        config=json.dumps(config),
    shell:
        "python workflow/scripts/study_config.py --config {params.config:q}"
        " --output {output} > {log} 2>&1"


rule grid_cells:
    output:
        "<results>/cells.csv",
    log:
        "<logs>/grid_cells.log",
    conda:
        "../workflow/envs/study.yaml"
    params:
        code=digest("grid_cells"),
        recipes=lookup(dpath="grid/recipes", within=config),
        strategies=lookup(dpath="grid/strategies", within=config),
        gpus=lookup(dpath="grid/gpus", within=config),
        batch_sizes=lookup(dpath="grid/batch_sizes", within=config),
        seeds=lookup(dpath="grid/seeds", within=config),
    shell:
        "python workflow/scripts/grid_cells.py --recipes {params.recipes}"
        " --strategies {params.strategies} --gpus {params.gpus}"
        " --batch-sizes {params.batch_sizes} --seeds {params.seeds} --output {output} > {log} 2>&1"


rule tables_timing:
    input:
        cells="<results>/cells.csv",
        records=records,
    output:
        f"<results>/tables/{STUDY}/timing.csv",
    log:
        f"<logs>/tables_timing/{STUDY}.log",
    conda:
        "../workflow/envs/study.yaml"
    params:
        code=digest("tables_timing"),
        runs=RUN_RECORDS,
        partial=PARTIAL,
    shell:
        "python workflow/scripts/tables_timing.py --cells {input.cells} --runs {params.runs}"
        " {params.partial} --output {output} > {log} 2>&1"


rule tables_accuracy:
    input:
        cells="<results>/cells.csv",
        records=records,
    output:
        "<results>/tables/accuracy.csv",
    log:
        "<logs>/tables_accuracy.log",
    conda:
        "../workflow/envs/study.yaml"
    params:
        code=digest("tables_accuracy"),
        runs=RUN_RECORDS,
        partial=PARTIAL,
        study=STUDY,
    shell:
        "python workflow/scripts/tables_accuracy.py --cells {input.cells} --runs {params.runs}"
        " --study {params.study} {params.partial} --output {output} > {log} 2>&1"


rule tables_provenance:
    input:
        cells="<results>/cells.csv",
        records=records,
    output:
        f"<results>/tables/{STUDY}/provenance.csv",
    log:
        f"<logs>/tables_provenance/{STUDY}.log",
    conda:
        "../workflow/envs/study.yaml"
    params:
        code=digest("tables_provenance"),
        runs=RUN_RECORDS,
        partial=PARTIAL,
    shell:
        "python workflow/scripts/tables_provenance.py --cells {input.cells} --runs {params.runs}"
        " {params.partial} --output {output} > {log} 2>&1"


rule tables_readings:
    input:
        cells="<results>/cells.csv",
        records=records,
    output:
        readings=f"<results>/tables/{STUDY}/readings.csv",
        device_time=f"<results>/tables/{STUDY}/device_time.csv",
    log:
        f"<logs>/tables_readings/{STUDY}.log",
    conda:
        "../workflow/envs/study.yaml"
    params:
        code=digest("tables_readings"),
        runs=RUN_RECORDS,
        partial=PARTIAL,
    shell:
        "python workflow/scripts/tables_readings.py --cells {input.cells} --runs {params.runs}"
        " {params.partial} --output {output.readings} --device-time {output.device_time}"
        " > {log} 2>&1"


rule tables_startup:
    input:
        cells="<results>/cells.csv",
        records=records,
    output:
        f"<results>/tables/{STUDY}/startup.csv",
    log:
        f"<logs>/tables_startup/{STUDY}.log",
    conda:
        "../workflow/envs/study.yaml"
    params:
        code=digest("tables_startup"),
        runs=RUN_RECORDS,
        partial=PARTIAL,
    shell:
        "python workflow/scripts/tables_startup.py --cells {input.cells} --runs {params.runs}"
        " {params.partial} --output {output} > {log} 2>&1"


rule tables_interconnect:
    input:
        sweeps=expand("<records>/interconnect/gpus~{gpus}/sweep.json", gpus=MULTI_GPU),
    output:
        table="<results>/tables/interconnect.csv",
        fit="<results>/tables/interconnect_fit.csv",
    log:
        "<logs>/tables_interconnect.log",
    conda:
        "../workflow/envs/study.yaml"
    params:
        code=digest("tables_interconnect"),
    shell:
        "python workflow/scripts/tables_interconnect.py --sweeps {input.sweeps}"
        " --output {output.table} --fit {output.fit} > {log} 2>&1"


rule tables_speedup:
    input:
        timing="<results>/tables/{study}/timing.csv",
    output:
        "<results>/tables/{study}/speedup.csv",
    log:
        "<logs>/tables_speedup/{study}.log",
    conda:
        "../workflow/envs/study.yaml"
    params:
        code=digest("tables_speedup"),
    shell:
        "python workflow/scripts/tables_speedup.py --timing {input.timing}"
        " --output {output} > {log} 2>&1"


rule tables_communication:
    input:
        timing="<results>/tables/{study}/timing.csv",
        readings=measured(f"{RESULTS}/tables/{STUDY}/readings.csv"),
    output:
        "<results>/tables/{study}/communication.csv",
    log:
        "<logs>/tables_communication/{study}.log",
    conda:
        "../workflow/envs/study.yaml"
    params:
        code=digest("tables_communication"),
        readings=lambda _, input: option("--readings", input.get("readings") or None),
    shell:
        "python workflow/scripts/tables_communication.py --timing {input.timing}"
        " {params.readings} --output {output} > {log} 2>&1"


rule tables_bandwidth:
    input:
        timing="<results>/tables/{study}/timing.csv",
        communication="<results>/tables/{study}/communication.csv",
        interconnect=measured(f"{RESULTS}/tables/interconnect.csv"),
    output:
        "<results>/tables/{study}/bandwidth.csv",
    log:
        "<logs>/tables_bandwidth/{study}.log",
    conda:
        "../workflow/envs/study.yaml"
    params:
        code=digest("tables_bandwidth"),
        interconnect=lambda _, input: option(
            "--interconnect", input.get("interconnect") or None
        ),
        gradient_bytes=lambda wildcards: option(
            "--gradient-bytes", stated_gradient_bytes(wildcards.study)
        ),
    shell:
        "python workflow/scripts/tables_bandwidth.py --timing {input.timing}"
        " --communication {input.communication} {params.interconnect} {params.gradient_bytes}"
        " --output {output} > {log} 2>&1"


rule tables_audit:
    input:
        timing="<results>/tables/{study}/timing.csv",
        speedup="<results>/tables/{study}/speedup.csv",
        communication="<results>/tables/{study}/communication.csv",
        bandwidth="<results>/tables/{study}/bandwidth.csv",
        manifest=measured(f"{DATASET}/manifest.json"),
        printed=lambda wildcards: printed_table(wildcards.study),
        utilization=measured(f"<results>/tables/{STUDY}/utilization.csv"),
    output:
        "<results>/tables/{study}/audit.csv",
    log:
        "<logs>/tables_audit/{study}.log",
    conda:
        "../workflow/envs/study.yaml"
    params:
        code=digest("tables_audit"),
        training_set=lambda _, input: (
            option("--manifest", input.manifest)
            if input.get("manifest")
            else option("--train-images", CIFAR10_TRAIN_IMAGES)
        ),
        printed=lambda _, input: option("--printed", input.get("printed") or None),
        utilization=lambda _, input: option(
            "--utilization", input.get("utilization") or None
        ),
    shell:
        "python workflow/scripts/tables_audit.py --timing {input.timing} --speedup {input.speedup}"
        " --communication {input.communication} --bandwidth {input.bandwidth}"
        " {params.training_set} {params.printed} {params.utilization}"
        " --output {output} > {log} 2>&1"


# Of a study stored before there were any, the other quantizers' and ResNet-18's that it has.
OPTIONAL = [
    path
    for path in stored.optional_records(config)
    if not REPLAY or (REPLAY / path).exists()
]


rule tables_quantization:
    input:
        records=[f"<records>/{path}" for path in stored.quantization_records(config)],
        peers=[f"<records>/{path}" for path in OPTIONAL if path.stem == "peers"],
        stages=[f"<records>/{path}" for path in OPTIONAL if path.stem == "resnet18"],
    output:
        "<results>/tables/quantization.csv",
        "<results>/tables/quantization_layers.csv",
        "<results>/tables/quantization_paired.csv",
        "<results>/tables/quantization_peers.csv",
        "<results>/tables/quantization_resnet.csv",
    log:
        "<logs>/tables_quantization.log",
    localrule: True
    conda:
        "../workflow/envs/study.yaml"
    params:
        code=digest("tables_quantization"),
        folder=subpath(output[0], parent=True),
    shell:
        "python workflow/scripts/tables_quantization.py --records {input.records}"
        " --peers {input.peers} --stages {input.stages} --output {params.folder} > {log} 2>&1"
