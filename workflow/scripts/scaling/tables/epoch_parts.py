"""The parts of an epoch, from steps on in-memory batches; and each rank's own speed."""

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from scaling.core.grid import CELL_KEYS
from scaling.core.records.run import RunRecord
from scaling.tables import schema
from scaling.tables.communication import NEGLIGIBLE, preferred
from scaling.tables.runs import Run, Seeds, by_cell, table_of_cells
from scaling.tables.timing import epochs, spread

SECONDS = ("seconds", "seconds_without_exchange")
"""Quantities measured in memory."""


def in_memory(runs: list[Run]) -> pd.DataFrame:
    """Return the seconds of an epoch on in-memory batches, one row per cell.

    It is the slowest rank's time, scaled to the epoch's number of images: the median over repeats
    and seeds, `count` of them, with its `spread`.
    """
    return table_of_cells("in_memory", runs, _in_memory)


def _in_memory(seeds: Seeds) -> dict[str, Any]:
    times = [_repeats(record) for record in seeds if record]
    found = [pd.Series(own["seconds"].max(axis=0)) for own in times if "seconds" in own]
    if not found:
        return {"runs": 0, "count": 0}
    seconds = pd.concat(found, keys=range(len(found)))
    column = "in_memory_epoch_seconds"
    whole = {column: seconds.median(), **spread(column, seconds)}
    return whole | {"runs": len(found), "count": len(seconds)}


def _repeats(record: RunRecord) -> dict[str, NDArray[np.float64]]:
    """Return the seconds of an epoch [rank, repeat], for each quantity that all ranks measured."""
    ranks, whole = record["in_memory"], epochs([record], "measured")
    if not ranks or whole.empty or not all(rank["iterations"] for rank in ranks):
        return {}
    if all(rank["samples"] for rank in ranks):
        scale = whole["samples"].iloc[0] / sum(rank["samples"] for rank in ranks)
    else:
        scale = whole["iterations"].iloc[0] / ranks[0]["iterations"]
    return {
        name: np.array([rank[name] for rank in ranks]) * scale
        for name in SECONDS
        if all(rank[name] for rank in ranks)
    }


def ranks(runs: list[Run]) -> pd.DataFrame:
    """Return each rank's own speed without gradient exchange, one row per rank of a cell.

    An all-reduce makes all ranks as slow as the slowest, so stragglers only show here. `slower` is
    this rank's relative slowdown to the median of the others (0.18: 18 %), `loader_seconds` the
    median of its data waits in the measured epochs.
    """
    rows = []
    for cell, seeds in by_cell(runs):
        records = [record for record in seeds if record]
        own = map(_repeats, records)
        times = [each["seconds_without_exchange"] for each in own if len(each) == len(SECONDS)]
        if not times or len(set(map(len, times))) > 1:
            continue
        seconds = np.concatenate(times, axis=1)
        middle = np.median(seconds, axis=1)
        for rank in range(len(middle)):
            waits = [
                epoch["loader_seconds"]
                for record in records
                for epoch in record["epochs"]
                if epoch["role"] == "measured" and epoch["rank"] == rank
            ]
            slower = middle[rank] / np.median(np.delete(middle, rank)) - 1
            found = schema.of_repeats("loader_seconds", waits)
            found |= schema.of_repeats("own_epoch_seconds", seconds[rank])
            rows.append({**cell, "rank": rank, "slower": slower, **found})
    return schema.arrange("ranks", rows)


def epoch_parts(
    timing: pd.DataFrame, in_memory: pd.DataFrame, communication: pd.DataFrame
) -> pd.DataFrame:
    """Return the parts of each epoch: compute + communication + data wait = epoch.

    `work_seconds` is the epoch without data waits: the epoch in memory, or the epoch itself if that
    was measured at most once and data waits are `NEGLIGIBLE`. Data wait = epoch - work, not below
    0. Communication is the exposed part, by the `preferred` estimate. Compute is the rest. A cell
    with data waits and no in-memory measurement has no work and no compute; its data wait is the
    host's, an upper bound, as the GPU works meanwhile.
    """
    first = preferred(communication).rename(columns={"estimate": "communication_estimate"})
    first = first[[*CELL_KEYS, *first.filter(like="communication_")]]
    memory = in_memory.rename(columns={"count": "memory_count", "runs": "memory_runs"})
    table = timing.merge(memory, how="left", on=CELL_KEYS).merge(first, how="left", on=CELL_KEYS)
    table.loc[table["gpus"] == 1, "communication_seconds"] = 0.0
    # A user's own command does not tell how long it waits.
    waits = table["loader_seconds"] > NEGLIGIBLE * table["epoch_seconds"]
    waits |= table["loader_seconds"].isna() & table["epoch_seconds"].notna()
    chosen = waits | (table["memory_count"] > 1)
    for end in ("", "_min", "_max", "_run_std"):
        measured = table[f"in_memory_epoch_seconds{end}"]
        table[f"work_seconds{end}"] = table[f"epoch_seconds{end}"].mask(chosen, measured)
    for number in ("count", "runs"):
        table[number] = table[number].mask(chosen, table[f"memory_{number}"])
    wait = (table["epoch_seconds"] - table["work_seconds"]).clip(lower=0)
    table["data_wait_seconds"] = wait.fillna(table["loader_seconds"])
    table["compute_seconds"] = table["epoch_seconds"] - wait - table["communication_seconds"]
    return schema.arrange("epoch_parts", table)
