"""Write the tables of the experiments: large batches, accuracy, ranks, int8."""

from operator import itemgetter
from pathlib import Path

import pandas as pd

from scaling.core import command_line
from scaling.core.records.convergence import CONVERGENCE
from scaling.core.records.machine import SYNCHRONIZATION
from scaling.core.records.quantization import VARIANT
from scaling.core.records.run import RUN
from scaling.tables import schema
from scaling.tables.accuracy import convergence, remedies, trained_to_accuracy
from scaling.tables.experiments import quantization, synchronization
from scaling.tables.noise import name_machines


@command_line.script
def main(
    tables: Path,
    margin: float = 0.0,
    techniques: tuple[Path, ...] = (),
    trainings: tuple[Path, ...] = (),
    target: float = 1.0,
    ranks: tuple[Path, ...] = (),
    variants: tuple[Path, ...] = (),
) -> None:
    """Write the tables of each kind of record that exists.

    With `techniques` a loss of less than `margin` counts as closed; `trainings` are full trainings
    towards a test accuracy of `target`.
    """
    found: dict[str, pd.DataFrame] = {}
    if techniques:
        found["convergence"] = convergence([CONVERGENCE.read(path) for path in techniques])
        found["remedies"] = remedies(found["convergence"], margin)
    if trainings:
        trained = [RUN.read(path) for path in trainings]
        name_machines(trained)
        found["trained_to_accuracy"] = trained_to_accuracy(trained, target)
    if ranks:
        documents = [SYNCHRONIZATION.read(path) for path in ranks]
        found["sampler"] = synchronization.orders(documents)
        found["collectives"] = synchronization.collectives(documents)
        found["buffers"] = synchronization.buffers(documents)
    if variants:
        measured = sorted(map(VARIANT.read, variants), key=itemgetter("seed"))
        found["quantization"] = quantization.variants(measured)
        found["quantization_layers"] = quantization.layers(measured)
        found["quantization_histograms"] = quantization.histograms(measured)
        found["quantization_paired"] = quantization.paired(measured)
    schema.write(found, tables)
