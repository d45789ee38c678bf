"""Question 3: the parts of an epoch, and the bandwidth of gradients."""

from typing import Any

import pandas as pd

from scaling.claims.claim import (
    HALF,
    NO_STEPS,
    Answer,
    Claim,
    Hypothesis,
    batch,
    extremes,
    label,
    measured,
    most_gpus,
    span,
    without_steps,
)
from scaling.core import numbers as fmt
from scaling.tables.schema import StudyTables, by_configuration, rows_of

PARTS = {
    "utilization": "matrix products at peak",
    "slower_share": "other kernel time",
    "idle_besides_share": "GPU idle",
    "exposed_share": "exposed messages",
    "waiting_share": "waits for ranks",
    "loading_share": "data wait",
    "unknown_share": "not traced",
}
"""The names of an epoch's parts, in order, by the columns of utilization.csv with their shares."""
NO_PEAK = (
    "There is no trace of steps, or no sweep of messages of their sizes on a machine that ran them."
)
COMPUTED = ["utilization", "slower_share"]
"""The columns of the parts in which kernels compute."""
COMPUTING = Hypothesis(
    "Q3.1-computing",
    "Computing takes most of an epoch on several GPUs.",
    test="Matrix products at peak and other kernel time, as shares of an epoch, by batch size. "
    "Supported: together more than half; refuted: less, also with all that is not traced.",
    more="a trace",
)
BANDWIDTH = Hypothesis(
    "Q3.2-bandwidth",
    "Gradients reach at least half of the bandwidth of standalone all-reduces.",
    test="Bytes of an epoch over the seconds of its messages in the trace, over the peak measured "
    "on the same machine, on the most GPUs. More than the peak is left out. Supported: half or "
    "more; refuted: less.",
)


def parts(tables: StudyTables) -> Answer:
    """Answer with the largest part of an epoch; a claim per recipe and strategy, on most GPUs."""
    claims = []
    table = tables.utilization[tables.utilization["gpus"] > 1]
    for name, rows in by_configuration(table).items():
        known = measured(rows, "waiting_share")
        cells = most_gpus(rows if known.empty else known)
        about = f"{name}, {fmt.gpus(cells['gpus'].iloc[0])}"
        shares = cells.dropna(subset="slower_share")
        claims.append(_computing(about, shares, without_steps(tables, rows["recipe"].iloc[0])))
    missing = COMPUTING.missing("", "Add 2 or more to `grid.gpus`.")
    return Answer(_largest(table), claims or [missing])


def _largest(table: pd.DataFrame) -> str | None:
    """Return sentences on exposed messages and the largest part, per recipe and strategy."""
    texts: list[str] = []
    for name, rows in by_configuration(table.dropna(subset="waiting_share")).items():
        median = rows[list(PARTS)].median()
        most = str(median.idxmax())
        share = f"{span(rows['exposed_share'])}{' of an epoch' * (not texts)}"
        part = f"exposed messages take {share}; the largest part is {PARTS[most]}"
        texts.append(f"With {name} {part} ({fmt.percent(median[most])}, median over b).")
    return " ".join(texts[:3]) or None


def _computing(about: str, shares: pd.DataFrame, missing: str) -> Claim:
    low = shares[COMPUTED].sum(axis=1)
    known = shares.assign(low=low, high=low + shares["unknown_share"]).sort_values("batch_size")
    cells = list(rows_of(known))
    if not cells:
        return COMPUTING.missing(about, missing)
    parts = [(cell, cell.low > HALF, cell.high < HALF) for cell in cells]
    return COMPUTING.claim(about, " ".join(map(_parts, [cells[0], *cells[1:][-1:]])), parts=parts)


def _parts(cell: Any) -> str:
    """Format the shares of a cell's epoch: computing, and each other part above 5 %."""
    others = {part: getattr(cell, name) for name, part in PARTS.items() if name not in COMPUTED}
    texts = [f"{fmt.percent(share)} {part}" for part, share in others.items() if share > 0.05]
    return f"{batch(cell)}: {', '.join([f'{fmt.percent(cell.low)} computing', *texts])}."


def bandwidth(tables: StudyTables) -> Answer:
    """Answer with the extreme shares of peak bandwidth; a claim per recipe and strategy."""
    claims, known = [], [tables.bandwidth[:0]]
    for name, rows in by_configuration(tables.bandwidth).items():
        cells, about = most_gpus(rows), f"{name}, {fmt.gpus(rows['gpus'].max())}"
        known.append(measured(cells[cells["utilization"] <= 1], "utilization"))
        missing = without_steps(tables, rows["recipe"].iloc[0])
        claims.append(_bandwidth(about, known[-1], missing))
    whole = pd.concat(known, ignore_index=True)
    if whole.empty:
        none = BANDWIDTH.missing("", "Add 2 or more to `grid.gpus`.")
        rates = measured(tables.bandwidth, "bandwidth_gb_per_s")
        return Answer(None if rates.empty else _rates(rates), claims or [none])
    worst, best = extremes(whole, "utilization")
    text = f"Gradients reach {fmt.percent(best.utilization)} of the bandwidth of standalone "
    text += f"all-reduces, {fmt.significant(best.peak_gb_per_s)} GB/s ({label(best)})"
    if worst.utilization < best.utilization:
        text += f", and at least {fmt.percent(worst.utilization)} ({label(worst)})"
    return Answer(f"{text}.", claims)


def _rates(rates: pd.DataFrame) -> str:
    """Return sentences on the lowest and highest bandwidth, for a study without a known peak."""
    worst, best = extremes(rates, "bandwidth_gb_per_s")
    low, high = (fmt.significant(cell.bandwidth_gb_per_s) for cell in (worst, best))
    return (
        f"From {low} GB/s ({label(worst)}) to {high} GB/s ({label(best)}). A message lasts until "
        "the slowest rank joins, so low values are waits. Standalone all-reduces of these sizes "
        "were not measured on the same machine."
    )


def _bandwidth(about: str, cells: pd.DataFrame, missing: str) -> Claim:
    if cells.empty:
        return BANDWIDTH.missing(about, NO_PEAK if missing == NO_STEPS else missing)
    worst, best = extremes(cells, "utilization")
    text = f"{fmt.significant(best.bandwidth_gb_per_s)} of {fmt.significant(best.peak_gb_per_s)} "
    text += f"GB/s ({fmt.percent(best.utilization)}) with {batch(best)}"
    if worst.Index != best.Index:
        text += f", {fmt.percent(worst.utilization)} with {batch(worst)}"
    parts = [(cell, cell.utilization >= HALF, True) for cell in rows_of(cells)]
    return BANDWIDTH.claim(about, f"{text}.", parts=parts)
