"""Write the tables of the experiments: large batches, accuracy, ranks, int8."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from scaling.core import command_line
from scaling.core.records.convergence import CONVERGENCE
from scaling.core.records.machine import SYNCHRONIZATION
from scaling.core.records.quantization import STAGED, VARIANT, read
from scaling.core.records.run import RUN
from scaling.tables import schema
from scaling.tables.accuracy import trained_to_accuracy
from scaling.tables.experiments import convergence, quantization, synchronization

Makers = Mapping[str, Callable[[Any], pd.DataFrame]]
OF_VARIANTS: Makers = {
    "quantization": quantization.variants,
    "quantization_layers": quantization.layers,
    "quantization_histograms": quantization.histograms,
    "quantization_paired": quantization.paired,
}


@command_line.script
def main(
    tables: Path,
    margin: float = 0.0,
    techniques: tuple[Path, ...] = (),
    trainings: tuple[Path, ...] = (),
    target: float = 1.0,
    ranks: tuple[Path, ...] = (),
    variants: tuple[Path, ...] = (),
    stages: tuple[Path, ...] = (),
) -> None:
    """Write the tables of each kind of record that exists.

    With `techniques` a loss of less than `margin` counts as closed; `trainings` are full trainings
    towards a test accuracy of `target`.
    """
    found: dict[str, pd.DataFrame] = {}
    if techniques:
        found["convergence"] = convergence.runs([CONVERGENCE.read(path) for path in techniques])
        found["remedies"] = convergence.remedies(found["convergence"], margin)
    if trainings:
        records = [RUN.read(path) for path in trainings]
        found["trained_to_accuracy"] = trained_to_accuracy(records, target)
    if ranks:
        documents = [SYNCHRONIZATION.read(path) for path in ranks]
        found["sampler"] = synchronization.orders(documents)
        found["collectives"] = synchronization.collectives(documents)
        found["buffers"] = synchronization.buffers(documents)
    if variants:
        measured = read(VARIANT, variants)
        found |= {name: make(measured) for name, make in OF_VARIANTS.items()}
    if stages:
        found["quantization_resnet"] = quantization.resnet(read(STAGED, stages))
    schema.write_all(found, tables)
