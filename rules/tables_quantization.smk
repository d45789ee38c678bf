# The parts of Part B that a study may do without, each with a table of its own.
localrules:
    tables_quantization_peers,
    tables_quantization_resnet,


# Of a study stored before there were any, those it has.
OPTIONAL_RECORDS = [
    path
    for path in stored.optional_records(config)
    if not REPLAY or (REPLAY / path).exists()
]
PEERS = [f"<records>/{path}" for path in OPTIONAL_RECORDS if path.stem == "peers"]
RESNETS = [f"<records>/{path}" for path in OPTIONAL_RECORDS if path.stem == "resnet18"]
OPTIONAL_TABLES = [
    f"<results>/tables/{table}.csv"
    for table, asked in {
        "quantization_peers": config["quantization"]["peers"],
        "quantization_resnet": config["quantization"]["resnet18"],
    }.items()
    if asked
]


rule tables_quantization_peers:
    input:
        peers=PEERS,
    output:
        "<results>/tables/quantization_peers.csv",
    log:
        "<logs>/tables_quantization_peers.log",
    conda:
        "../workflow/envs/study.yaml"
    params:
        code=digest("tables_quantization_peers"),
    shell:
        "python workflow/scripts/tables_quantization_peers.py --peers {input.peers}"
        " --output {output} > {log} 2>&1"


rule tables_quantization_resnet:
    input:
        stages=RESNETS,
    output:
        "<results>/tables/quantization_resnet.csv",
    log:
        "<logs>/tables_quantization_resnet.log",
    conda:
        "../workflow/envs/study.yaml"
    params:
        code=digest("tables_quantization_resnet"),
    shell:
        "python workflow/scripts/tables_quantization_resnet.py --stages {input.stages}"
        " --output {output} > {log} 2>&1"
