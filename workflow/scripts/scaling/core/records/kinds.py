"""The kind of each record, by the name of its file."""

from typing import Any

from scaling.core.records import convergence, dataset, machine, quantization, run
from scaling.core.records.kind import Kind

KINDS: dict[str, Kind[Any]] = {
    "run.json": run.RUN,
    "runs.json": convergence.CONVERGENCE,
    "manifest.json": dataset.DATASET,
    "check.json": machine.CHECK,
    "sweep.json": machine.SWEEP,
    "peaks.json": machine.PEAKS,
    "synchronization.json": machine.SYNCHRONIZATION,
    "quantization.json": quantization.VARIANT,
    "resnet18.json": quantization.STAGED,
}
