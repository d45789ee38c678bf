"""What an epoch takes and costs on each number of GPUs, and on twice the most of them."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from scaling.core.grid import CELL_KEYS
from scaling.tables.schema import by_configuration, rows_of


def rows(
    cells: pd.DataFrame, startup: pd.DataFrame, batch_sizes: Mapping[tuple[str, str], int]
) -> list[dict[str, Any]]:
    """Return a row for each configuration, at its batch size b per GPU, and number N of GPUs.

    They have `epoch_seconds` T(N, b), `speedup` and `efficiency`; of an epoch `gpu_seconds` N · T,
    `joules` and `money`; `startup_seconds` of a run; `same_global_seconds` T(N, b / N). The last
    row of a configuration is for twice the most GPUs, at their efficiency, and `extrapolated`.
    Configurations that are no faster on the most GPUs than on one have none.
    """
    timed = cells[(cells["status"] == "ok") & cells["speedup"].notna()]
    begun = [*CELL_KEYS, "startup_seconds"]
    timed = timed.merge(startup[begun], how="left", on=CELL_KEYS)
    found: list[dict[str, Any]] = []
    for recipe, strategy, own in by_configuration(timed):
        size = batch_sizes.get((recipe, strategy))
        seconds = own.set_index(["gpus", "batch_size"])["epoch_seconds"]
        same_size = own[own["batch_size"] == size].sort_values("gpus")
        if len(same_size) < 2 or same_size["speedup"].iloc[-1] <= 1:
            continue
        for row in rows_of(same_size):
            kept = {key: getattr(row, key) for key in [*CELL_KEYS, "epoch_seconds"]}
            found.append(
                {
                    **kept,
                    "extrapolated": False,
                    "speedup": row.speedup,
                    "efficiency": row.efficiency,
                    "gpu_seconds": row.gpus * row.epoch_seconds,
                    "joules": row.joules_per_image * row.samples,
                    "money": row.money_per_epoch,
                    "startup_seconds": row.startup_seconds,
                    "same_global_seconds": seconds.get((row.gpus, size // row.gpus)),
                }
            )
        found.append(_doubled(found[-1]))
    return found


def _doubled(last: dict[str, Any]) -> dict[str, Any]:
    """Return the row of twice the GPUs at the same efficiency, at the same cost of an epoch."""
    unknown = {"startup_seconds": None, "same_global_seconds": None, "extrapolated": True}
    return {
        **last,
        **unknown,
        "gpus": 2 * last["gpus"],
        "epoch_seconds": last["epoch_seconds"] / 2,
        "speedup": 2 * last["speedup"],
    }
