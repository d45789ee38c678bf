localrules:
    tables_peaks,
    tables_utilization,


rule tables_peaks:
    input:
        peaks="<records>/peaks/peaks.json",
        code=code("tables_peaks"),
    output:
        table="<results>/tables/peaks.csv",
        topology="<results>/tables/topology.txt",
    log:
        "<logs>/tables_peaks.log",
    conda:
        "../workflow/envs/study.yaml"
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
        code=code("tables_utilization"),
    output:
        f"<results>/tables/{STUDY}/utilization.csv",
    log:
        f"<logs>/tables_utilization/{STUDY}.log",
    conda:
        "../workflow/envs/study.yaml"
    params:
        runs=RUN_RECORDS,
        partial=PARTIAL,
    shell:
        "python workflow/scripts/tables_utilization.py --cells {input.cells} --runs {params.runs}"
        " {params.partial} --timing {input.timing} --communication {input.communication}"
        " --peaks {input.peaks} --output {output} > {log} 2>&1"
