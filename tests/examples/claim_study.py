"""The made-up study of `report_cells`, in memory, for the claims on its times."""

from collections.abc import Callable

import pandas as pd

from examples import report_cells
from scaling.claims.claim import Answer, Claim
from scaling.core.grid import CELL_KEYS
from scaling.tables import schema
from scaling.tables.communication import communication, readings
from scaling.tables.epoch_parts import epoch_parts
from scaling.tables.ratios import speedup
from scaling.tables.schema import StudyTables

Tables = dict[str, pd.DataFrame]


def study(change: Callable[[pd.DataFrame], None] | None = None) -> Tables:
    """The tables of its times, which may be changed, and what follows from them."""
    timing = report_cells.cells()
    if change is not None:
        change(timing)
    memory = report_cells.in_memory(timing)
    parts = communication(timing, memory, readings([]))
    return {
        "timing": timing,
        "speedup": speedup(timing, schema.frame("costs")),
        "epoch_parts": epoch_parts(timing, memory, parts),
    }


def claims(answer: Callable[[StudyTables], Answer], made: Tables) -> dict[str, Claim]:
    """The claims of an answer to these tables, by their ids."""
    found = answer(StudyTables(report_cells.STUDY, made, "", {}))
    return {claim.id: claim for claim in found.claims}


def set_time(timing: pd.DataFrame, cell: tuple, seconds: float, loader: float = 0.0) -> None:
    """Give a cell (recipe, strategy, gpus, batch_size) a time of ± 2 %, ± 1 % without loading."""
    row = (timing[CELL_KEYS] == list(cell)).all(axis=1)
    for column, value in report_cells.of_seconds(seconds, loader).items():
        timing.loc[row, column] = value


def device_time(cells: dict[int, tuple[float, float]]) -> pd.DataFrame:
    """device_time.csv of fast/ddp on 1 GPU: (step, busy) seconds by batch size, ± 1 % of gap."""
    rows = [
        dict(zip(CELL_KEYS, ["fast", "ddp", 1, batch], strict=True))
        | {"step_seconds": step, "busy_seconds": busy, "count": 3, "note": ""}
        for batch, (step, busy) in cells.items()
    ]
    table = schema.frame("device_time", rows)
    gap = table["step_seconds"] - table["busy_seconds"]
    return table.assign(gap_seconds=gap, gap_seconds_min=0.99 * gap, gap_seconds_max=1.01 * gap)
