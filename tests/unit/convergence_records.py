"""Records of remedies, made by hand: a few lines say what every run came to."""

from dataclasses import asdict
from typing import Any

import pandas as pd

from scaling.convergence import remedy_table, run_tables
from scaling.convergence.plan import Study
from scaling.convergence.record import ConvergenceRecord
from scaling.convergence.remedy import from_options
from scaling.convergence.time_to_accuracy import time_to_accuracy

STUDY = Study(
    reference_batch=128,
    gpus=4,
    epochs=2,
    max_epochs=8,
    seeds=(0, 1, 2),
    factors=(0.25, 1.0),
    learning_rate=0.1,
    momentum=0.9,
    weight_decay=5e-4,
    crop_padding=4,
    horizontal_flip=True,
    model_width=64,
    precision="bf16",
)


def run(accuracy: float | None, seed: int = 0, factor: float = 1.0, **more: Any) -> dict[str, Any]:
    """A run of 2 epochs with 10 updates in all that ends with this test accuracy.

    After the first epoch it was 0.2 lower; training accuracy is 0.1 higher. None: the loss was not
    finite in update 7.
    """
    failed = accuracy is None
    value = 0.1 if accuracy is None else accuracy
    epochs = [
        {
            "epoch": epoch,
            "updates": 5 * epoch,
            "train_loss": None if failed else 2 - value + lag,
            "train_accuracy": None if failed else value + 0.1 - lag,
            "test_loss": None if failed else 3 - value + lag,
            "test_accuracy": None if failed else value - lag,
        }
        for epoch, lag in ((1, 0.2), (2, 0.0))
    ]
    return {
        "seed": seed,
        "factor": factor,
        "learning_rate": 0.1 * factor,
        "chosen": True,
        "updates": 10,
        "diverged": "not finite" if failed else "",
        "diverged_update": 7 if failed else None,
        "epochs": epochs,
        "updates_per_point": 4,
        "losses": [2.5, 2.0, None if failed else 1.5],
        "seconds": 1.0,
        **more,
    }


def record(
    remedy: str, global_batch: int, runs: list[dict[str, Any]], **options: Any
) -> ConvergenceRecord:
    """The record of a remedy with these options and runs."""
    chosen = from_options(remedy, options)
    gpus = STUDY.gpus_of(global_batch)
    result = {
        "gpus": gpus,
        "rule_rate": chosen.rate(STUDY.learning_rate, global_batch / STUDY.reference_batch),
        "chosen_factor": 1.0,
        "at_edge": False,
        "updates_per_epoch": 5,
        "reference_updates": 10,
        "runs": runs,
    }
    return ConvergenceRecord(
        remedy=remedy,
        global_batch=global_batch,
        options={**asdict(chosen)},
        status="ok",
        message=None,
        training=asdict(STUDY),
        dataset={"source": "digits", "checksum": "fae71f", "train_images": 640},
        result=result,
        environment={},
    )


def seeds(*accuracies: float | None, **more: Any) -> list[dict[str, Any]]:
    """A run of each accuracy, seed after seed."""
    return [run(accuracy, seed, **more) for seed, accuracy in enumerate(accuracies)]


def study() -> list[ConvergenceRecord]:
    """No remedy, linear scaling at its word and swept, and equal updates, at 128, 512 and 8192."""
    worse = {"chosen": False, "factor": 0.25}
    naive = {"scaling": "linear", "factors": [1]}
    equal = {"equal_updates": True}
    return [
        record("none", 128, seeds(0.70, 0.71, 0.72), factors=[1]),
        record("none", 512, seeds(0.50, 0.51, 0.52), factors=[1]),
        record("none", 8192, seeds(0.20, 0.21, 0.22), factors=[1]),
        record("naive", 128, seeds(0.70, 0.71, 0.72), **naive),
        record("naive", 512, seeds(0.55, 0.56, 0.57), **naive),
        record("naive", 8192, seeds(*[0.10] * 3, diverged="at chance"), **naive),
        record("linear", 128, [run(0.6, **worse), *seeds(0.70, 0.71, 0.72)], scaling="linear"),
        record("linear", 512, [run(0.5, **worse), *seeds(0.60, 0.61, 0.62)], scaling="linear"),
        record("linear", 8192, [run(0.2, **worse), *seeds(0.40, 0.41, 0.42)], scaling="linear"),
        record("equal", 128, seeds(0.70, 0.71, 0.72), **equal),
        record("equal", 512, seeds(0.74, 0.75, 0.76), **equal),
        record("equal", 8192, seeds(0.50, 0.51, 0.52, updates=8), **equal),
    ]


def tables(timing: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The tables of `study`, as the report reads them, beside this timing.csv."""
    runs, epochs = run_tables.runs(study()), run_tables.epochs(study())
    return {
        "convergence": runs,
        "remedies": remedy_table.remedies(runs),
        "time_to_accuracy": time_to_accuracy(runs, epochs, timing, 0.22),
    }
