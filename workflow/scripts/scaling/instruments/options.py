"""What the measurements of a machine are asked to do, as their command lines. Needs no torch."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from scaling.core.environment import Device
from scaling.core.training_options import ModelOptions


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """What every measurement of a machine is told."""

    output: Path
    """JSON file to write."""
    gpus: int
    """GPUs that take part, of all nodes; on a CPU, processes of a sweep, else ignored."""
    nodes: int = 1
    """Nodes of a Slurm job that share the GPUs."""
    device: Device = "auto"
    time_limit_seconds: float = 600
    """Time limit of it all."""


@dataclass(frozen=True, kw_only=True)
class Sweep(Measurement, ModelOptions):
    """Options of the all-reduce sweep, over 2 GPUs or more."""

    message_bytes: tuple[int, ...]
    """Sizes of the sweep."""
    manifest: Path
    """The dataset's manifest.json: its classes and the size of its images fix the model."""
    warmup: int = 5
    """Untimed repeats of each size."""
    repeats: int = 20
    """Timed repeats of each size."""
    iterations: int = 10
    """All-reduces in a repeat, back to back as nccl-tests times them."""


@dataclass(frozen=True, kw_only=True)
class Probe(Measurement):
    """Options of the measurement of a machine's peaks, on one node."""

    gpus: int = 1
    """GPUs that take part; ignored on a CPU."""
    matrix_sizes: tuple[int, ...]
    """n of each n×n matrix product."""
    copy_bytes: int
    """Size of each copy."""
    repeats: int = 10
    """Timed repeats of each figure."""
    sustained_seconds: float = 0
    """For which matrix products go on at least; 0 measures none."""
    cpu_threads: int = 1
    """Threads of the process."""


@dataclass(frozen=True, kw_only=True)
class MachineCheck(Measurement):
    """Options of the look at a machine."""

    check: Literal["refuse", "warn", "off"] = "refuse"
    """What to do about what is bad."""
