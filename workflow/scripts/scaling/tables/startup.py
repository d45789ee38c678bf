"""What a cell costs besides its measured epochs: from run records to the parts of a run's time."""

from itertools import groupby
from operator import itemgetter
from statistics import fmean
from typing import Any

import pandas as pd

from scaling.core.grid import CELL_KEYS
from scaling.core.records import PHASES, Role, RunRecord
from scaling.tables import io, schema
from scaling.tables.runs import Run
from scaling.tables.timing import TIMED, WORST_FIRST

PHASE_COLUMNS = [f"{phase}_seconds" for phase in PHASES]
PARTS = [
    *("startup_seconds", "warmup_seconds", "measured_seconds"),
    *("other_seconds", "shutdown_seconds"),
]
COLUMNS = schema.columns("startup")


def startup(runs: list[Run]) -> pd.DataFrame:
    """The fixed cost of each cell: one row per cell, columns `COLUMNS`, in seconds.

    `PHASE_COLUMNS` (see `scaling.startup_clock`) add up to startup_seconds, and `PARTS` to
    run_seconds: from the start of the run's command to the end of its last process. The warm-up
    epochs are a part of their own, because what is compiled at first use is in them;
    other_seconds are evaluation, instruments and whatever lies between the parts.
    unmeasured_share = 1 - measured_seconds / run_seconds.

    The figures are of the seed with the median run_seconds (the mean of the two middle ones for
    an even count), out of `count` seeds; NaN where no seed ran to its end or the records were made
    before this was measured. The status is that of `scaling.timing`.
    """
    rows = []
    for key, seeds in groupby(sorted(runs, key=_key), _key):
        records = [record for _, record in seeds]
        statuses = [record["status"] if record else "missing" for record in records]
        whole = [parts for record in records if record and (parts := _parts(record))]
        rows.append(
            {
                **dict(zip(CELL_KEYS, key, strict=True)),
                "status": min(statuses, key=WORST_FIRST.index),
                **_median(whole),
                "count": len(whole),
            }
        )
    return io.arrange(pd.DataFrame(rows, columns=COLUMNS), COLUMNS)


def _key(run: Run) -> tuple[Any, ...]:
    return tuple(getattr(run[0], key) for key in CELL_KEYS)


def _parts(record: RunRecord) -> dict[str, float] | None:
    """The row of one run, None for one that did not run to its end or did not measure it."""
    phases, run_seconds = record["startup"], record["run_seconds"]
    shutdown_seconds = record["shutdown_seconds"]
    if (
        record["status"] not in TIMED
        or phases is None
        or run_seconds is None
        or shutdown_seconds is None
    ):
        return None
    warmup_seconds = _epoch_seconds(record, "warmup")
    measured_seconds = _epoch_seconds(record, "measured")
    known = phases["total"] + warmup_seconds + measured_seconds + shutdown_seconds
    return {
        **{f"{phase}_seconds": phases[phase] for phase in PHASES},
        "startup_seconds": phases["total"],
        "warmup_seconds": warmup_seconds,
        "measured_seconds": measured_seconds,
        "other_seconds": run_seconds - known,
        "shutdown_seconds": shutdown_seconds,
        "run_seconds": run_seconds,
        "unmeasured_share": 1 - measured_seconds / run_seconds,
    }


def _epoch_seconds(record: RunRecord, role: Role) -> float:
    """The seconds of all epochs of a role, each the slowest rank's."""
    slowest: dict[int, float] = {}
    for row in record["epochs"]:
        if row["role"] == role:
            slowest[row["epoch"]] = max(row["seconds"], slowest.get(row["epoch"], 0.0))
    return sum(slowest.values())


def _median(rows: list[dict[str, float]]) -> dict[str, float]:
    """The middle row by run_seconds, the mean of the middle two, or nothing without rows."""
    ordered = sorted(rows, key=itemgetter("run_seconds"))
    middle = ordered[(len(ordered) - 1) // 2 : len(ordered) // 2 + 1]
    columns = middle[0] if middle else {}
    return {column: fmean(row[column] for row in middle) for column in columns}
