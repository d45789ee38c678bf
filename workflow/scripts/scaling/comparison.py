"""Studies side by side: one table of the figures that all of them have."""

import pandas as pd

from scaling import tables
from scaling.communication import SUBTRACTIONS
from scaling.grid import CELL_KEYS

COLUMNS = [
    *("study", *tables.KEYS, "epoch_seconds", "epoch_seconds_min", "epoch_seconds_max", "count"),
    *("speedup", "efficiency", "estimate", "communication_seconds", "bandwidth_gb_per_s"),
]


def of_study(name: str, speedup: pd.DataFrame, bandwidth: pd.DataFrame) -> pd.DataFrame:
    """The figures of one study, columns `COLUMNS`: one row per cell.

    Communication and bandwidth are by subtraction, the only estimate that every study has: without
    loading where the study measured it apart, else of whole epochs; `estimate` says which.
    """
    order = list(SUBTRACTIONS)
    rates = bandwidth[
        bandwidth["estimate"].isin(order) & bandwidth["communication_seconds"].notna()
    ]
    rates = rates.sort_values("estimate", key=lambda names: names.map(order.index), kind="stable")
    rates = rates.drop_duplicates(CELL_KEYS, keep="last")
    columns = [*CELL_KEYS, "estimate", "communication_seconds", "bandwidth_gb_per_s"]
    table = speedup.merge(rates[columns], how="left", on=CELL_KEYS)
    return table.assign(study=name)[COLUMNS]
