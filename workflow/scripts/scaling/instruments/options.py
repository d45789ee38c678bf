"""Command-line options of the machine measurements. Does not import torch."""

from pathlib import Path
from typing import Literal

from scaling.core.environment import Device
from scaling.core.training_options import ModelOptions, Options


class Measurement(Options):
    """Options of every machine measurement."""

    output: Path
    """JSON file to write."""
    gpus: int
    """GPUs of all nodes; on a CPU, processes of the sweep, else ignored."""
    nodes: int = 1
    """Nodes of a Slurm job that share the GPUs."""
    device: Device = "auto"
    cpu_threads: int = 1
    """Threads of each process."""
    time_limit_seconds: float = 600
    """Time limit of the whole measurement."""


class Sweep(Measurement, ModelOptions):
    """Options of the all-reduce sweep over 2 GPUs or more."""

    message_bytes: list[int]
    """Message sizes."""
    manifest: Path
    """The dataset's manifest.json, whose classes and image size define the model."""
    warmup: int = 5
    """Untimed repeats of each size."""
    repeats: int = 20
    """Timed repeats of each size."""
    iterations: int = 10
    """Back-to-back all-reduces per repeat, as in nccl-tests."""


class Probe(Measurement):
    """Options of the measurement of peak rates, on one node."""

    gpus: int = 1
    """GPUs to measure; ignored on a CPU."""
    matrix_sizes: list[int]
    """Sizes n of the n×n matrix products."""
    copy_bytes: int
    """Size of each copy."""
    repeats: int = 10
    """Timed repeats of each figure."""
    sustained_seconds: float = 0
    """Minimum duration of sustained matrix products; 0 measures none."""


class MachineCheck(Measurement):
    """Options of the machine check."""

    check: Literal["refuse", "warn", "off"] = "refuse"
    """What to do about bad findings."""
