"""Options of the machine measurements, and their sections of the configuration.

Does not import torch.
"""

from pathlib import Path
from typing import Annotated, Literal

from annotated_types import Ge, Le, MultipleOf

from scaling.core.environment import Device
from scaling.core.section import NotNegative, Positive, Some
from scaling.core.training_options import ModelOptions, Options


class Interconnect(Options):
    message_bytes: Some[Annotated[int, Ge(4), MultipleOf(4)]]
    """Sizes of the all-reduce sweep. The gradients' size, DDP's buckets and recipe `tuned`'s are
    always added."""
    warmup: Positive = 5
    """Untimed repeats of each size."""
    repeats: Annotated[int, Ge(3)] = 20
    """Timed repeats of each size; the figure is their median."""
    iterations: Annotated[int, Ge(1), Le(20)] = 10
    """All-reduces timed together in one repeat, as nccl-tests does."""


class Peaks(Options):
    matrix_sizes: Some[Positive]
    """Sizes of the square matrix products, in float32, TF32 and bf16 (on a CPU, float32 and bf16).
    The largest rate of a precision is its peak."""
    copy_bytes: Positive
    """Size of the copies within a device and between GPUs; larger than any cache."""
    repeats: Annotated[int, Ge(3)] = 10
    """Timed repeats of each figure, after a warm-up; the figure is their median."""
    sustained_seconds: NotNegative = 0.0
    """The rates above are a sprint's, of a GPU that has rested; it lowers its clocks when it works
    on. The best size is read again after so many seconds of work, and up to three times as many
    until the rate has settled: the sustained peak. 0: not. May be left out."""


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


class Sweep(Measurement, ModelOptions, Interconnect):
    """Options of the all-reduce sweep over 2 GPUs or more."""

    manifest: Path
    """The dataset's manifest.json, whose classes and image size define the model."""


class Probe(Measurement, Peaks):
    """Options of the measurement of peak rates, on one node."""

    gpus: int = 1
    """GPUs to measure; ignored on a CPU."""


class MachineCheck(Measurement):
    """Options of the machine check."""

    check: Literal["refuse", "warn", "off"] = "refuse"
    """What to do about bad findings."""
