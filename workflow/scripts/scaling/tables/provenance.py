"""Where, when and with what every run was made."""

from dataclasses import asdict
from typing import Any

import pandas as pd

from scaling.core.records import RunRecord
from scaling.tables import io, schema
from scaling.tables.runs import Run

_LISTS = ["hosts", "device_names", "device_ids", "slurm_gpus"]
_FIELDS = [
    *("device", "cpu", "cpu_count", "python", "torch", "cuda", "nccl", "driver"),
    *("slurm_job_id", "commit", "config_digest", "started", "ended"),
]
_OF_TRAINING = ["training", "recipe_options", "compiled_batch_sizes", "cpu_threads"]
COLUMNS = schema.columns("provenance")


def provenance(runs: list[Run]) -> pd.DataFrame:
    """One row per run, columns `COLUMNS`: its record's environment, empty where it says nothing.

    Hosts, device names, device ids (UUIDs) and Slurm's GPUs (node:ids) are listed once each, with
    "; " between them. `cpu_threads` is of each process. `recipe_options` are those that were
    applied; of a run that ended before they were, those that were asked for. `compiled_batch_sizes`
    are those of the steps that were compiled; empty where none was, and where the record does not
    say. `measured_as` is the
    strategy whose run on one GPU this one shares.
    """
    rows = []
    for cell, record in runs:
        environment: dict[str, Any] = record["environment"] if record else {}
        rows.append(
            {
                **asdict(cell),
                "status": record["status"] if record else "missing",
                "measured_as": record.get("measured_as") if record else None,
                "model": _model(record) if record else None,
                **(_training(record["training"]) if record else dict.fromkeys(_OF_TRAINING)),
                **{key: "; ".join(dict.fromkeys(environment.get(key, []))) for key in _LISTS},
                **{key: environment.get(key) for key in _FIELDS},
            }
        )
    return io.arrange(pd.DataFrame(rows, columns=COLUMNS, dtype=object), COLUMNS)


def _model(record: RunRecord) -> str:
    """Name, width and, where a process got as far as making it, the number of parameters."""
    model = record["model"]
    parameters = f", {model['parameters']:,} parameters" if model["parameters"] else ""
    return f"{model['name']}, width {model['width']}{parameters}"


def _training(training: dict[str, Any]) -> dict[str, Any]:
    """The columns `_OF_TRAINING`, as a person would say them."""
    flip = "random" if training["horizontal_flip"] else "no"
    options = training["recipe_applied"] or training["recipe_options"]
    return {
        "training": (
            f"SGD, learning rate {training['learning_rate']:g}, "
            f"momentum {training['momentum']:g}, weight decay {training['weight_decay']:g}; "
            f"random crop with {training['crop_padding']} pixels of padding, "
            f"{flip} horizontal flip; {training['warmup_epochs']} warm-up and "
            f"{training['measured_epochs']} measured epochs"
        ),
        "recipe_options": ", ".join(f"{name} {value}" for name, value in options.items()),
        "compiled_batch_sizes": "; ".join(map(str, training["compiled_batch_sizes"] or [])),
        "cpu_threads": training["cpu_threads"],
    }
