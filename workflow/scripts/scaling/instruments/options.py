"""What the measurements of a machine are asked to do, as their command lines. Needs no torch."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from scaling.core.environment import Device
from scaling.core.training_options import ModelOptions


@dataclass(frozen=True)
class Sweep(ModelOptions):
    """Options of the all-reduce sweep."""

    gpus: int
    """GPUs, 2 or more; on a CPU, processes."""
    message_bytes: tuple[int, ...]
    """Sizes of the sweep."""
    manifest: Path
    """The dataset's manifest.json: its classes and the size of its images fix the model."""
    output: Path
    """sweep.json"""
    nodes: int = 1
    """Nodes of a Slurm job that share the GPUs."""
    device: Device = "auto"
    warmup: int = 5
    """Untimed repeats of each size."""
    repeats: int = 20
    """Timed repeats of each size."""
    iterations: int = 10
    """All-reduces in a repeat, back to back as nccl-tests times them."""
    time_limit_seconds: float = 600
    """Time limit of the whole sweep."""


@dataclass(frozen=True)
class Probe:
    """Options of the measurement of a machine's peaks."""

    matrix_sizes: tuple[int, ...]
    """n of each n×n matrix product."""
    copy_bytes: int
    """Size of each copy."""
    output: Path
    """peaks.json"""
    gpus: int = 1
    """GPUs that take part; ignored on a CPU."""
    device: Device = "auto"
    repeats: int = 10
    """Timed repeats of each figure."""
    sustained_seconds: float = 0
    """For which matrix products go on at least; 0 measures none."""
    cpu_threads: int = 1
    """Threads of the process."""
    time_limit_seconds: float = 600
    """Time limit of the whole measurement."""


@dataclass(frozen=True)
class MachineCheck:
    """Options of the look at a machine."""

    gpus: int
    """GPUs to look at, of all nodes; ignored on a CPU."""
    output: Path
    """check.json"""
    check: Literal["refuse", "warn", "off"] = "refuse"
    """What to do about what is bad."""
    nodes: int = 1
    """Nodes of a Slurm job that share the GPUs."""
    device: Device = "auto"
    time_limit_seconds: float = 600
    """Time limit of it all."""
