"""Studies side by side: one table of the figures that all of them have."""

import pandas as pd

from scaling.core.grid import CELL_KEYS
from scaling.tables import schema
from scaling.tables.communication import SUBTRACTIONS

_LINE = ["recipe", "strategy"]


def of_study(
    name: str,
    times: pd.DataFrame,
    speedups: pd.DataFrame,
    rates: pd.DataFrame,
    model: str,
    hardware: str,
) -> pd.DataFrame:
    """The figures of one study from its tables: one row per cell.

    Communication and bandwidth are by one estimate for each recipe and strategy, see
    `by_one_estimate`; `estimate` says which, and is empty where a cell has no communication time.
    """
    known = by_one_estimate(rates).dropna(subset="communication_seconds")
    columns = [*CELL_KEYS, "estimate", "communication_seconds", "bandwidth_gb_per_s", "utilization"]
    table = speedups.merge(known[columns], how="left", on=CELL_KEYS)
    table = table.merge(times[[*CELL_KEYS, "samples"]], how="left", on=CELL_KEYS)
    return table.assign(study=name, model=model, hardware=hardware)[schema.columns("comparison")]


def model_and_hardware(provenance: pd.DataFrame) -> tuple[str, str]:
    """What a measured study's runs recorded of both: each different one, with "; " between."""
    # A run that could never start saw no device, and counted no parameters.
    runs = provenance[~provenance["status"].isin(["missing", "infeasible"])]
    devices = runs["device_names"].where(runs["device_names"] != "", "CPU " + runs["cpu"])
    model, hardware = ("; ".join(column.drop_duplicates()) for column in (runs["model"], devices))
    return model or "not recorded", hardware or "not recorded"


def by_one_estimate(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of one estimate by subtraction for each recipe and strategy of `table`.

    `table` is one of communication or of bandwidths. Only estimates by subtraction exist in every
    study. Uses the one without loading if every cell that has one of whole epochs has it too, else
    that of whole epochs.
    """
    whole, without = SUBTRACTIONS
    known = table.dropna(subset="communication_seconds")
    cells = known.groupby([*_LINE, "estimate"]).size().unstack(fill_value=0)
    cells = cells.reindex(columns=[whole, without], fill_value=0)
    apart = (cells[without] > 0) & (cells[without] >= cells[whole])
    lines = table[_LINE].merge(apart.rename("apart").reset_index(), how="left", on=_LINE)
    chosen = lines["apart"].eq(True).map({True: without, False: whole}).to_numpy()
    return table[table["estimate"].to_numpy() == chosen]
