"""Where, when and with what every run was made."""

from dataclasses import asdict
from typing import Any

import pandas as pd

from scaling import tables
from scaling.grid import CELL_KEYS
from scaling.record import RunRecord
from scaling.tables import Run

_LISTS = ["hosts", "device_names"]
_FIELDS = [
    *("device", "cpu", "cpu_count", "python", "torch", "cuda", "nccl", "driver"),
    *("commit", "config_digest", "started", "ended"),
]
COLUMNS = [*CELL_KEYS, "seed", "status", "model", "cpu_threads", *_LISTS, *_FIELDS]


def provenance(runs: list[Run]) -> pd.DataFrame:
    """One row per run, columns `COLUMNS`: its record's environment, empty where it says nothing.

    Hosts and device names are listed once each, with "; " between them. `cpu_threads` is of each
    process.
    """
    rows = []
    for cell, record in runs:
        environment: dict[str, Any] = record["environment"] if record else {}
        rows.append(
            {
                **asdict(cell),
                "status": record["status"] if record else "missing",
                "model": _model(record) if record else None,
                "cpu_threads": record["training"]["cpu_threads"] if record else None,
                **{key: "; ".join(dict.fromkeys(environment.get(key, []))) for key in _LISTS},
                **{key: environment.get(key) for key in _FIELDS},
            }
        )
    return tables.arrange(pd.DataFrame(rows, columns=COLUMNS), COLUMNS)


def _model(record: RunRecord) -> str:
    """Name, width and, where a process got as far as making it, the number of parameters."""
    model = record["model"]
    parameters = f", {model['parameters']:,} parameters" if model["parameters"] else ""
    return f"{model['name']}, width {model['width']}{parameters}"
