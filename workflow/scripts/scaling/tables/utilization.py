"""Which share of the machine's measured matrix product rate a cell uses, and what the rest is."""

import math
from typing import Any

import pandas as pd

from scaling.core.grid import CELL_KEYS
from scaling.core.records import RunRecord
from scaling.tables import io, schema
from scaling.tables.limits import peak_flops_per_second
from scaling.tables.runs import Run
from scaling.tables.timing import measured_epochs

COLUMNS = schema.columns("utilization")
ESTIMATES = ["without_communication", "subtraction_without_loading"]
"""Which estimate a cell's communication is taken from: the first that has a value.

Both see exposed communication alone, in an epoch without loading.
"""


def costs(runs: list[Run]) -> pd.DataFrame:
    """What one image costs in each cell, and in which precision: from the records.

    A figure that the records of a cell's seeds lack, or in which they differ, is empty; `cost_note`
    says so. `power_capped_share` is the part of all measured epochs in which the GPU that was held
    back longest ran at its power limit, at most 1; empty where no driver counted it. An H200's
    counts in steps of 0.1 s: for epochs of less than a second this is a rough figure.
    """
    cells: dict[tuple[Any, ...], list[RunRecord]] = {}
    for cell, record in runs:
        found = cells.setdefault(tuple(getattr(cell, key) for key in CELL_KEYS), [])
        found += [record] if record else []
    rows = []
    for key, records in cells.items():
        flops = {record["model"]["flops_per_image"] for record in records} - {None}
        applied = [record["training"]["recipe_applied"] or {} for record in records]
        precisions = {options.get("precision") for options in applied} - {None}
        notes = [
            f"the runs {'differ in their' if found else 'did not record the'} {what}"
            for what, found in (("operations per image", flops), ("precision", precisions))
            if len(found) != 1
        ]
        rows.append(
            {
                **dict(zip(CELL_KEYS, key, strict=True)),
                "flops_per_image": flops.pop() if len(flops) == 1 else math.nan,
                "precision": precisions.pop() if len(precisions) == 1 else "",
                "power_capped_share": _power_capped_share(records),
                "cost_note": "; ".join(notes),
            }
        )
    return io.arrange(pd.DataFrame(rows, columns=schema.columns("costs")), schema.columns("costs"))


def utilization(
    timing: pd.DataFrame, communication: pd.DataFrame, peaks: pd.DataFrame, costs: pd.DataFrame
) -> pd.DataFrame:
    """The table of utilization: one row per row of `timing`, columns `COLUMNS`.

    utilization = images/s · flops_per_image / (N · peak), the model FLOP utilization of PaLM
    (Chowdhery et al. 2022, arXiv:2204.02311, section 4.1), with the measured `peaks` of the cell's
    precision in place of a data sheet's; 1.0 is all of it. images/s are of the median epoch.

    The shares are of that epoch and add up to 1: `utilization` is the time its operations would
    take at the peak, `loading_share` the wait for data, `communication_share` exposed communication
    by `communication_estimate` (see `ESTIMATES`; empty on one GPU and where there is no estimate),
    `other_share` all the rest: what runs below the peak, and gaps. `power_capped_share`: see
    `costs`. What is missing is in `note`.
    """
    table = timing.merge(costs, how="left", on=CELL_KEYS)
    table = table.merge(_communication(communication), how="left", on=CELL_KEYS)
    table["images_per_second"] = table["samples"] / table["epoch_seconds"]
    table["images_per_second_min"] = table["samples"] / table["epoch_seconds_max"]
    table["images_per_second_max"] = table["samples"] / table["epoch_seconds_min"]
    without_loading = table["samples"] / table["epoch_seconds_without_loading"]
    table["images_per_second_without_loading"] = without_loading
    per_gpu = table["flops_per_image"] / table["gpus"]
    table["flops_per_second_per_gpu"] = table["images_per_second"] * per_gpu
    rates = [peak_flops_per_second(peaks, precision) for precision in table["precision"]]
    table["peak_flops_per_second"] = pd.Series(rates, index=table.index, dtype=float)
    table["utilization"] = table["flops_per_second_per_gpu"] / table["peak_flops_per_second"]
    table["utilization_without_loading"] = (
        without_loading * per_gpu / table["peak_flops_per_second"]
    )
    table["loading_share"] = table["loader_seconds"] / table["epoch_seconds"]
    table["communication_share"] = table["communication_seconds"] / table["epoch_seconds"]
    known = table["utilization"] + table["loading_share"]
    table["other_share"] = 1 - known - table["communication_share"].fillna(0)
    table["note"] = [_note(row) for row in table.itertuples()]
    return io.arrange(table.astype({"flops_per_image": "Int64"}), COLUMNS)


def _power_capped_share(records: list[RunRecord]) -> float:
    epochs = [epoch for record in records for epoch in measured_epochs(record)]
    capped = [epoch.power_capped_seconds for epoch in epochs]
    known = [seconds for seconds in capped if seconds is not None]
    if not epochs or len(known) < len(epochs):
        return math.nan
    return min(1.0, sum(known) / sum(epoch.seconds for epoch in epochs))


def _communication(table: pd.DataFrame) -> pd.DataFrame:
    """`CELL_KEYS`, communication_seconds and communication_estimate of each cell that has some."""
    known = table[table["estimate"].isin(ESTIMATES) & table["communication_seconds"].notna()]
    preferred = known.sort_values("estimate", key=lambda names: names.map(ESTIMATES.index))
    first = preferred.drop_duplicates(CELL_KEYS)
    first = first.rename(columns={"estimate": "communication_estimate"})
    return first[[*CELL_KEYS, "communication_seconds", "communication_estimate"]]


def _note(row: Any) -> str:
    if math.isnan(row.epoch_seconds):
        return f"no time (status {row.status})"
    notes = [row.cost_note] if row.cost_note else []
    if row.precision and math.isnan(row.peak_flops_per_second):
        notes.append(f"no matrix product was measured in {row.precision}")
    if row.utilization > 1:
        notes.append("utilization above 100 %")
    return "; ".join(notes)
