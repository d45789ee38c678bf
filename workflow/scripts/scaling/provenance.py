"""Where, when and with what every run was made."""

from dataclasses import asdict
from typing import Any

import pandas as pd

from scaling import tables
from scaling.grid import CELL_KEYS
from scaling.tables import Run

_LISTS = ["hosts", "device_names"]
_FIELDS = ["torch", "cuda", "nccl", "driver", "commit", "config_digest", "started", "ended"]
COLUMNS = [*CELL_KEYS, "seed", "status", *_LISTS, *_FIELDS]


def provenance(runs: list[Run]) -> pd.DataFrame:
    """One row per run, columns `COLUMNS`: its record's environment, empty where it says nothing.

    Hosts and device names are listed once each, with "; " between them.
    """
    rows = []
    for cell, record in runs:
        environment: dict[str, Any] = record["environment"] if record else {}
        rows.append(
            {
                **asdict(cell),
                "status": record["status"] if record else "missing",
                **{key: "; ".join(dict.fromkeys(environment.get(key, []))) for key in _LISTS},
                **{key: environment.get(key) for key in _FIELDS},
            }
        )
    return tables.arrange(pd.DataFrame(rows, columns=COLUMNS), COLUMNS)
