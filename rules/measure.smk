# The dataset, and what is measured besides runs: the machine, its peaks and links, how ranks share work.
from scaling.launch.measure import MachineCheck, Probe, Sweep
from scaling.synchronization.plan import Plan


rule dataset_prepare:
    output:
        output=f"{DATASET}/images.npz",
        manifest=f"{DATASET}/manifest.json",
    log:
        "logs/dataset_prepare.log",
    priority: JOBS.first
    localrule: True
    conda:
        "../workflow/envs/study.yaml"
    params:
        **JOBS.dataset(),
        code=measuring(
            "dataset_prepare", *DATASETS.modules(config["dataset"]["source"])
        ),
    shell:
        'python "${{SCALING_STUDY_HOME:-.}}"/workflow/scripts/dataset_prepare.py {params.job:q} {params.files:q} > {log:q} 2>&1'


rule peaks_measure:
    input:
        **CHECKED,
    output:
        "<records>/peaks{repeat}/peaks.json",
    log:
        "logs/peaks_measure{repeat}.log",
    priority: JOBS.first
    conda:
        "../workflow/envs/study.yaml"
    threads: JOBS.threads
    resources:
        **TIMED,
    params:
        **JOBS.job("probe", Probe, "peaks"),
        code=JOBS.code_of_timed("scaling.instruments.peaks"),
    shell:
        'python "${{SCALING_STUDY_HOME:-.}}"/workflow/scripts/measure.py {params.job:q} {params.files:q} > {log:q} 2>&1'


use rule peaks_measure as interconnect_sweep with:
    input:
        **CHECKED,
        manifest=f"{DATASET}/manifest.json",
    output:
        "<records>/interconnect/gpus~{gpus}{repeat}/sweep.json",
    log:
        "logs/interconnect_sweep/gpus~{gpus}{repeat}.log",
    params:
        **JOBS.job("sweep", Sweep, "interconnect"),
        code=JOBS.code_of_timed("scaling.instruments.allreduce", *model_code(MODEL)),


use rule peaks_measure as synchronization_measure with:
    input:
        **IMAGES,
        **CHECKED,
    output:
        "<records>/experiments/gpus~{gpus}/synchronization.json",
    log:
        "logs/synchronization_measure/gpus~{gpus}.log",
    priority: 0
    params:
        **JOBS.job("plan", Plan, "synchronization"),
        code=measuring(
            *("scaling.synchronization.worker", "scaling.launch.measure"),
            *("scaling.training.strategies", *model_code(MODEL)),
        ),


use rule peaks_measure as machine_check with:
    input:
        [],
    output:
        f"{RECORDS}/machine{{repeat}}/check.json",
    log:
        "logs/machine_check{repeat}.log",
    threads: lambda wildcards: JOBS.threads({"gpus": JOBS.most})
    resources:
        **JOBS.timed(JOBS.most),
    params:
        files=JOBS.job("check", MachineCheck)["files"],
        # Another largest number of GPUs is checked anew. Else a change outdates nothing: the check came before all else.
        gpus=JOBS.most,
        code=None,
        job=lambda wildcards, resources: as_json(
            check=JOBS.options(
                MachineCheck,
                gpus=JOBS.most,
                nodes=resources.nodes,
                products=not stored.commands_alone(config),
            )
        ),
