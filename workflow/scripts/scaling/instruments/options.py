"""Command-line options of the machine measurements. Does not import torch."""

from pathlib import Path
from typing import Literal

from scaling.core.environment import Device
from scaling.core.training_options import Interconnect, Model, Options, Peaks


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


class Sweep(Measurement, Interconnect):
    """Options of the all-reduce sweep over 2 GPUs or more."""

    model: Model = Model()
    """Whose gradients are sent."""
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
