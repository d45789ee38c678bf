localrules:
    tables_peaks,
    tables_utilization,


rule tables_peaks:
    input:
        peaks="<records>/peaks/peaks.json",
    output:
        table="<results>/tables/peaks.csv",
        topology="<results>/tables/topology.txt",
    log:
        "<logs>/tables_peaks.log",
    conda:
        "../workflow/envs/study.yaml"
    params:
        code=digest("tables_peaks"),
    shell:
        "python workflow/scripts/tables_peaks.py --peaks {input.peaks}"
        " --output {output.table} --topology {output.topology} > {log} 2>&1"


rule tables_utilization:
    input:
        cells="<results>/cells.csv",
        records=records,
        timing=f"<results>/tables/{STUDY}/timing.csv",
        communication=f"<results>/tables/{STUDY}/communication.csv",
        peaks="<results>/tables/peaks.csv",
    output:
        f"<results>/tables/{STUDY}/utilization.csv",
    log:
        f"<logs>/tables_utilization/{STUDY}.log",
    conda:
        "../workflow/envs/study.yaml"
    params:
        code=digest("tables_utilization"),
        runs=RUN_RECORDS,
        partial=PARTIAL,
    shell:
        "python workflow/scripts/tables_utilization.py --cells {input.cells} --runs {params.runs}"
        " {params.partial} --timing {input.timing} --communication {input.communication}"
        " --peaks {input.peaks} --output {output} > {log} 2>&1"
