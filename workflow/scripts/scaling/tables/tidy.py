"""All figures of a study's configurations as one list, for other programs."""

from typing import Any

import pandas as pd

from scaling.core.grid import CELL_KEYS
from scaling.tables.schema import StudyTables

QUANTITIES = {
    "timing": {"epoch_seconds": "s", "samples": ""},
    "speedup": {"speedup": "1", "efficiency": "1"},
    "utilization": {"images_per_second": "1/s", "loading_share": "1", "communication_share": "1"},
    "costs": {"peak_memory_bytes": "B", "joules_per_image": "J", "startup_seconds": "s"},
}
"""Units of the quantities, by the tables that have them."""


def tidy(tables: StudyTables) -> list[dict[str, Any]]:
    """Return a row for each known figure: configuration, quantity, value, interval and unit.

    The interval is of 95 %, None where the study has none.
    """
    units = tables.timing.set_index(CELL_KEYS)["unit"]
    rows = []
    for name, quantities in QUANTITIES.items():
        for row in getattr(tables, name).to_dict("records"):
            cell = {key: row[key] for key in CELL_KEYS}
            for quantity, unit in quantities.items():
                if pd.isna(row[quantity]):
                    continue
                of = units.get(tuple(cell.values())) or "images"
                interval = [row.get(f"{quantity}_{end}") for end in ("low", "high")]
                rows.append(
                    {"configuration": cell, "quantity": quantity.replace("images", "samples")}
                    | {"value": row[quantity]}
                    | {"interval": None if any(map(pd.isna, interval)) else interval}
                    | {"unit": {"": of, "1/s": f"{of}/s"}.get(unit, unit)}
                )
    return rows
