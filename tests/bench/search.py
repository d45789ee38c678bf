"""Search the options of a large-batch technique, one after the other, by held-out images.

From the technique `start` the next of an option's `values` is tried, of one option after the other,
up and down, and kept if the accuracy on held-out images after the last epoch, a mean over the
seeds, is higher. Ends when no neighbour is better; after so many `seconds` none is begun.
"""

import csv
import tempfile
import time
from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import Any

from scaling.convergence.engine import OF_THE_RATES, Study
from scaling.convergence.experiment import Experiment
from scaling.core import command_line
from scaling.core.errors import program
from scaling.core.training_options import DataOptions
from scaling.launch import lease
from scaling.registry.update_rule import Technique
from scaling.training.trainer import TrainingData

OPTIONS = [
    *("muon", "muon_momentum", "momentum", "rest_rate", "warmup_share", "decay", "zero_gamma"),
    *("label_smoothing", "ghost_batch", "lars", "nesterov", "newton_schulz_steps"),
]
HOPELESS = 0.01
"""What is worse than the best by this from the first seed is not trained from the others."""


class Search(DataOptions):
    study: Study
    global_batch: int
    start: dict[str, Any]
    values: dict[str, Any]
    seconds: float
    output: Path


def climb(start: Any, values: Any, accuracy: Callable[[Any], float | None]) -> None:
    """Try neighbours of the best technique until none is better, or `accuracy` returns None."""
    best, tried, failed, reached = start, [start], 0, accuracy(start)
    for option, step in cycle([(option, step) for option in values for step in (1, -1)]):
        place, better = values[option].index(best[option]) + step, False
        while reached is not None and 0 <= place < len(values[option]):
            other = best | {option: values[option][place]}
            found = 0.0 if other in tried else accuracy(other)
            tried.append(other)
            if found is not None and found <= reached:
                break
            best, reached, place, better = other, found, place + step, True
        failed = 0 if better else failed + 1
        if reached is None or failed == 2 * len(values):
            return


@program
def main(argv: list[str] | None = None) -> None:
    """Write a row of each technique that was tried."""
    asked = command_line.parse(Search, argv, __doc__)
    data = TrainingData.read(asked.dataset, asked.manifest)
    rows, firsts = list[dict[str, Any]](), list[float]()
    cache = tempfile.TemporaryDirectory()
    with lease.device("auto") as device, cache as trained:
        of_all: Any = (asked.study, data, asked.global_batch, device, Path(trained), [])
        experiment = Experiment(*of_all)
        ends, kind = time.monotonic() + asked.seconds, dict[str, Any]()

        def accuracy(options: dict[str, Any]) -> float | None:
            nonlocal experiment, kind
            if time.monotonic() > ends:
                return None
            technique = Technique.of(options, "the technique")
            before, kind = kind, technique.model_dump(exclude={*OF_THE_RATES, "muon"})
            if kind != before:  # Memory has room for the graphs of one kind of update.
                experiment = Experiment(*of_all)
            found: dict[str, list[float]] = {"validation_accuracy": [], "validation_loss": []}
            for seed in asked.study.seeds:
                run = experiment.run(str(options), technique, 1.0, seed, held_out=True)
                for name, values in found.items():
                    values.append(run["epochs"][-1][name] or 0.0)
                if found["validation_accuracy"][0] < max(firsts, default=0.0) - HOPELESS:
                    break
            firsts.append(found["validation_accuracy"][0])
            row: Any = {"global_batch": asked.global_batch, "epochs": asked.study.epochs}
            row |= {name: round(sum(values) / len(values), 4) for name, values in found.items()}
            row |= {name: getattr(technique, name) for name in OPTIONS}
            rows.append(row | {"seeds": len(found["validation_loss"])})
            return float(row["validation_accuracy"])

        climb(asked.start, asked.values, accuracy)
    with asked.output.open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        table.writeheader()
        table.writerows(rows)
