"""Claims on tables made by hand."""

from collections.abc import Callable
from typing import Any

import pandas as pd

from examples.records import timing_table
from scaling.claims.claim import Answer, Claim
from scaling.core.grid import CELL_KEYS
from scaling.tables import schema
from scaling.tables.epoch_parts import communication, epoch_parts, readings
from scaling.tables.ratios import speedup
from scaling.tables.schema import StudyTables

Tables = dict[str, pd.DataFrame]


def study(*rows: dict[str, Any]) -> Tables:
    """Rows of timing.csv and what follows from them; in memory, epochs take as long as measured."""
    timing = timing_table(*rows)
    ends = {f"epoch_seconds{end}": f"in_memory_epoch_seconds{end}" for end in ("", "_min", "_max")}
    cells = timing[[*CELL_KEYS, "count", *ends]].rename(columns=ends)
    memory = schema.frame("in_memory", cells.assign(runs=1))
    parts = communication(timing, memory, readings([]))
    return {
        "timing": timing,
        "speedup": speedup(timing, schema.frame("costs")),
        "epoch_parts": epoch_parts(timing, memory, parts),
    }


def claims(answer: Callable[[StudyTables], Answer], made: Tables) -> dict[str, Claim]:
    """The claims of an answer to these tables, by their ids."""
    return {claim.id: claim for claim in answer(StudyTables("example", made)).claims}
