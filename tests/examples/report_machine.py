"""The machine of the made-up study: its all-reduces, peaks and topology."""

import itertools

import pandas as pd

import scaling.tables.limits

GRADIENT_BYTES = 44_695_848
TOPOLOGY = "\tGPU0\tGPU1\nGPU0\t X \tNV18\nGPU1\tNV18\t X \n"


def sweeps() -> list[dict[str, object]]:
    """All-reduces that take 28 µs and the ring's bytes at 329 or 352 GB/s, within 2 %."""
    sizes = [("sweep", 4096), ("sweep", 70_000), ("sweep", 1 << 20), ("sweep", 1 << 30)]
    sizes += [("bucket", 9_461_800), ("bucket", 26_494_976), ("bucket", 8_739_072)]
    sizes += [("gradients", GRADIENT_BYTES)]
    documents = []
    for gpus, peak in ((2, 329e9), (4, 352e9)):
        rows = []
        for kind, size in sizes:
            seconds = 28e-6 + size * 2 * (gpus - 1) / gpus / peak
            seconds *= 1.02 if size % 2048 else 0.98
            repeats = [0.97 * seconds, seconds, 1.1 * seconds]
            rows.append({"kind": kind, "message_bytes": size, "seconds": repeats, "correct": True})
        documents.append({"gpus": gpus, "backend": "nccl", "rows": rows})
    return documents


def peaks() -> pd.DataFrame:
    """peaks.csv: 8192 is the best of two sizes, 417 TFLOP/s in tf32 and 797 in bf16; 4 GPUs."""
    rates = {("tf32", 4096): 390, ("tf32", 8192): 417, ("bf16", 4096): 700, ("bf16", 8192): 797}
    rows: list[dict[str, object]] = []
    for (precision, size), teraflops in rates.items():
        seconds = 2 * size**3 / teraflops / 1e12
        kind = {"quantity": "matrix_product", "precision": precision, "matrix_size": size}
        rows.append({**kind, "seconds": [0.98 * seconds, seconds, 1.02 * seconds]})
    copy = {"copy_bytes": 1 << 30, "seconds": [5.03e-4, 5.03e-4, 5.1e-4]}
    rows.append({"quantity": "device_copy", **copy})
    for source, target in itertools.permutations(range(4), 2):
        ends = {"source_gpu": source, "target_gpu": target}
        rows.append({"quantity": "gpu_to_gpu_copy", **ends, **copy, "seconds": [2.7e-3] * 3})
    return scaling.tables.limits.peaks({"rows": rows})
