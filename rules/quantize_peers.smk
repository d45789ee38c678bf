# Timed, but on the CPU: it has the machine to itself and takes no GPU.
rule quantize_peers:
    input:
        images=ancient(f"{DATASET}/images.npz"),
        manifest=f"{DATASET}/manifest.json",
        weights="<records>/quantization/seed~{seed}/float32.pt",
    output:
        "<records>/quantization/seed~{seed}/peers.json",
    log:
        "logs/quantize_peers/seed~{seed}.log",
    conda:
        "../workflow/envs/study.yaml"
    threads: timed_threads
    resources:
        runtime=TIMED["runtime"],
        slurm_extra=slurm_options,
    params:
        code=digest("quantize_peers"),
        peers=lookup(dpath="quantization/peers", within=config),
        calibration_images=lookup(
            dpath="quantization/calibration_images", within=config
        ),
        cpu_threads=lookup(dpath="machine/cpu_threads", within=config),
    shell:
        "python workflow/scripts/quantize_peers.py --dataset {input.images}"
        " --manifest {input.manifest} --weights {input.weights} --seed {wildcards.seed}"
        " --calibration-images {params.calibration_images} --peers {params.peers}"
        " --threads {params.cpu_threads} --output {output} > {log} 2>&1"
