"""Question 3.1: where the time of an epoch goes on several GPUs."""

from typing import Any

import pandas as pd

from scaling.claims.claim import Answer, Claim, Hypothesis
from scaling.claims.phrases import NO_TRACE, batch, measured, span_of_shares
from scaling.core import numbers as fmt
from scaling.core.grid import CELL_KEYS
from scaling.tables.schema import StudyTables, by_configuration, rows_of

PARTS = {
    "utilization": "arithmetic at peak",
    "slower_share": "kernels below peak",
    "idle_share": "GPU idle",
    "communication_share": "exposed communication",
    "loading_share": "waiting for data",
    "unknown_share": "not known",
}
"""The parts of an epoch in order, by the columns of utilization.csv with their shares."""
COMPUTED = ["utilization", "slower_share"]
"""Those in which kernels compute."""
HALF = 0.5


def answer(tables: StudyTables) -> Answer:
    """Answer by the largest part of an epoch; a claim a configuration on the most GPUs."""
    claims = []
    table = tables.epoch_parts[tables.epoch_parts["gpus"] > 1]
    for recipe, strategy, rows in by_configuration(table):
        known = measured(rows, "communication_seconds")
        gpus = (rows if known.empty else known)["gpus"].max()
        about = f"{recipe}/{strategy}, {fmt.gpus(gpus)}"
        own = known[(known["gpus"] == gpus) & known["work_seconds"].notna()]
        claims.append(_computing(about, tables.utilization.merge(own[CELL_KEYS])))
    missing = COMPUTING.missing("", "Add 2 or more to `grid.gpus`.")
    return Answer(_text(tables.utilization), claims or [missing])


def _text(table: pd.DataFrame) -> str | None:
    """Return the largest part of a median epoch and that of communication, on several GPUs."""
    known = table[table["communication_share"].notna() & (table["gpus"] > 1)]
    said = []
    for recipe, strategy, rows in by_configuration(known):
        median = rows[list(PARTS)].median()
        most = str(median.idxmax())
        said.append(
            f"{recipe}/{strategy} {PARTS[most]} ({fmt.percent(median[most])}), communication "
            f"{span_of_shares(rows['communication_share'])}"
        )
    return f"Median over b: {'; '.join(said[:3])}." if said else None


COMPUTING = Hypothesis(
    "Q3.1-computing",
    "Computing takes most of an epoch on several GPUs.",
    table="utilization",
    test="Arithmetic at peak and kernels below it, as shares of the epoch, at each batch size. "
    "Supported: together more than half; refuted: less than half, also with all that is not known.",
    more="a trace",
)


def _computing(about: str, parts: pd.DataFrame) -> Claim:
    low = parts[COMPUTED].sum(axis=1)
    known = parts.assign(low=low, high=low + parts["unknown_share"]).sort_values("batch_size")
    cells = list(rows_of(known[known["slower_share"].notna()]))
    if not cells:
        return COMPUTING.missing(about, NO_TRACE)
    return COMPUTING.claim(
        about,
        " ".join(map(_parts, [cells[0], *cells[1:][-1:]])),
        parts=[(cell, cell.low > HALF, cell.high < HALF) for cell in cells],
    )


def _parts(cell: Any) -> str:
    """Name the computing and all other parts that take more than 5 % of a cell's epoch."""
    others = {part: getattr(cell, name) for name, part in PARTS.items() if name not in COMPUTED}
    said = [f"{fmt.percent(share)} {part}" for part, share in others.items() if share > 0.05]
    return f"{batch(cell)}: {', '.join([f'{fmt.percent(cell.low)} computing', *said])}."
