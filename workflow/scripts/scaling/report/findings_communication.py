"""Sentences on communication: its share of an epoch, the bandwidth it reaches."""

import pandas as pd

from scaling.core import numbers as fmt
from scaling.core.grid import CELL_KEYS
from scaling.report.finding import Finding, measured, part_of, source
from scaling.tables import noise
from scaling.tables.schema import StudyTables

TRACE = "profiler"
PREFERRED = [TRACE, "subtraction_without_loading"]


def communication(tables: StudyTables) -> Finding:
    """The share of communication: in the fastest multi-GPU cell, and over all cells.

    By the trace of the kernels where cells have one: what is left after a subtraction may as well
    be the host's work or ranks that wait for one another's data.
    """
    table = measured(tables.communication, "communication_seconds")
    if table.empty:
        return Finding(
            "How much of an epoch is communication cannot be said: no cell on several GPUs has "
            "both its own time and that of one GPU at the same batch size.",
            "communication.csv",
            supported=False,
        )
    name = _estimate(table)
    traced = name == TRACE
    cells = noise.with_resolution(table[table["estimate"] == name], tables.timing)
    cells["share"] = cells["communication_seconds"] / cells["total_seconds"]
    untraced = len(table.drop_duplicates(CELL_KEYS)) - len(cells) if traced else 0
    clear = cells[~cells["within_noise"] & (cells["share"] > 0)]
    fast = next(cells.loc[[cells["total_seconds"].idxmin()]].itertuples())
    sentence = (
        f"By {_words(name)}, "
        f"{'exposed ' if traced else ''}communication is {fmt.percent(fast.share)} of the shortest "
        f"{'traced ' if untraced else ''}epoch on several GPUs"
        f"{', loading left out' if traced else ''} "
        f"({part_of(fast.communication_seconds, fast.total_seconds)}), "
        f"{fmt.cell_name(fast)}{'; that is within noise' if fast.within_noise else ''}."
    )
    cited = [fast]
    if len(clear):
        most = next(clear.loc[[clear["share"].idxmax()]].itertuples())
        cited.append(most)
        sentence += (
            f" The largest share is {fmt.percent(most.share)} "
            f"({part_of(most.communication_seconds, most.total_seconds)}): {fmt.cell_name(most)}."
        )
    doubtful = int(cells["within_noise"].sum())
    if doubtful:
        sentence += (
            f" In {doubtful} of {fmt.plural(len(cells), 'cell')} it is within the noise of the "
            "times it was subtracted from."
        )
    negative = int((cells["share"] < 0).sum())
    if negative:
        sentence += (
            f" In {fmt.plural(negative, 'cell')} it comes out negative, so it is not communication "
            "that was measured there."
        )
    if traced:
        sentence += " Waiting inside it for the slowest rank is part of it."
    if untraced:
        sentence += f" {fmt.plural(untraced, 'cell')} more could not be traced."
    return Finding(sentence, source("communication", *cited))


def bandwidth(tables: StudyTables) -> Finding:
    """The best bandwidth reached, by the estimate of `communication`, and its share of the peak."""
    table = measured(tables.bandwidth, "bandwidth_gb_per_s")
    if table.empty:
        return Finding(
            "No bandwidth can be stated: no cell has a communication time above zero.",
            "bandwidth.csv",
            supported=False,
        )
    name = _estimate(table)
    cells = noise.with_resolution(table[table["estimate"] == name], tables.timing)
    clear = cells[~cells["within_noise"]]
    if clear.empty:
        return Finding(
            f"No bandwidth stands out from noise: by {_words(name)}, every communication "
            "time is within the noise of the times it was subtracted from.",
            "bandwidth.csv",
            supported=False,
        )
    best = next(clear.loc[[clear["bandwidth_gb_per_s"].idxmax()]].itertuples())
    sentence = (
        f"By {_words(name)}, gradients travel at up to "
        f"{fmt.significant(best.bandwidth_gb_per_s)} GB/s ({fmt.cell_name(best)}), "
    )
    if pd.isna(best.utilization):
        sentence += "a share of the peak that is unknown, as the interconnect was not measured."
    else:
        sentence += (
            f"{fmt.percent(best.utilization)} of the {fmt.significant(best.peak_gb_per_s)} GB/s "
            "measured in the same study."
        )
        if best.utilization > 1:
            sentence += (
                " Above 100 %, the estimate is too low to be a communication time, or the messages "
                "are not those of the measurement (see the audit)."
            )
    return Finding(sentence, source("bandwidth", best))


def _estimate(table: pd.DataFrame) -> str:
    """The estimate a sentence is about: the first of `PREFERRED` that there is, else the first."""
    names = [str(name) for name in table["estimate"].unique()]
    return next((name for name in PREFERRED if name in names), names[0])


def _words(name: str) -> str:
    return "the profiler’s trace" if name == TRACE else fmt.estimate(name)
