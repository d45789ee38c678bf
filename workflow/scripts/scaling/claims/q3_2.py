"""Question 3.2: the bandwidth of gradients, compared with that of all-reduces alone."""

import pandas as pd

from scaling.claims.claim import Answer, Claim, Hypothesis
from scaling.claims.phrases import batch, extremes, label, measured
from scaling.core import numbers as fmt
from scaling.tables.communication import TRACE
from scaling.tables.schema import StudyTables, by_configuration, rows_of

HALF = 0.5
TRAVELLING = Hypothesis(
    "Q3.2-travelling",
    "On their way, gradients reach at least half of the bandwidth of all-reduces alone.",
    table="bandwidth",
    test="Bytes of an epoch over the seconds of its communication kernels, those behind "
    "computation included, and over the peak measured in the same study, in each cell on the most "
    "GPUs. Without a trace, by subtraction without loading beyond its noise, which counts all that "
    "does not shrink with N, so that gradients may be faster. More than the peak is no "
    "communication time and left out. Supported: half or more; refuted: less, by a trace.",
)


def answer(tables: StudyTables) -> Answer:
    """Answer by the slowest and fastest gradients; a claim a configuration on the most GPUs."""
    claims, known = [], []
    for recipe, strategy, rows in by_configuration(tables.bandwidth):
        gpus = rows["gpus"].max()
        cells = measured(rows[rows["gpus"] == gpus], "utilization")
        known.append(cells[cells["utilization"] <= 1])
        claims.append(_travelling(f"{recipe}/{strategy}, {fmt.gpus(gpus)}", known[-1]))
    if not claims:
        return Answer(None, [TRAVELLING.missing("", "Add 2 or more to `grid.gpus`.")])
    if (whole := pd.concat(known)).empty:
        return Answer(None, claims)
    worst, best = extremes(whole.reset_index(drop=True), "utilization")
    said = f"At {fmt.percent(best.utilization)} of the {fmt.significant(best.peak_gb_per_s)} GB/s "
    said += f"of all-reduces alone ({label(best)}, by {fmt.words(best.estimate)})"
    if worst.utilization < best.utilization:
        said += f", at the slowest {fmt.percent(worst.utilization)} ({label(worst)})"
    return Answer(f"{said}.", claims)


def _travelling(about: str, cells: pd.DataFrame) -> Claim:
    if cells.empty:
        add = "Set `training.instrumented_iterations` above 0 to trace communication."
        return TRAVELLING.missing(about, add)
    worst, best = extremes(cells, "utilization")
    sentence = f"{fmt.significant(best.bandwidth_gb_per_s)} of "
    sentence += f"{fmt.significant(best.peak_gb_per_s)} GB/s ({fmt.percent(best.utilization)}) "
    sentence += f"with {batch(best)}"
    if worst.Index != best.Index:
        sentence += f", {fmt.percent(worst.utilization)} with {batch(worst)}"
    traced = best.estimate == TRACE
    by = "by the trace" if traced else "by subtraction, which overstates the time"
    return TRAVELLING.claim(
        about,
        f"{sentence}, {by}.",
        parts=[(cell, cell.utilization >= HALF, cell.estimate == TRACE) for cell in rows_of(cells)],
    )
