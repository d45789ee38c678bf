"""Sentences on communication: its share of an epoch, the bandwidth it reaches."""

import pandas as pd

from scaling import noise
from scaling import report_format as fmt
from scaling.finding import Finding, measured, part_of, source
from scaling.result_tables import StudyTables

PREFERRED_ESTIMATE = "subtraction_without_loading"


def communication(tables: StudyTables) -> Finding:
    """The share of communication: in the fastest multi-GPU cell, and over all cells."""
    table = measured(tables.communication, "communication_seconds")
    if table.empty:
        return Finding(
            "How much of an epoch is communication cannot be said: no cell on several GPUs has "
            "both its own time and that of one GPU at the same batch size.",
            "communication.csv",
            supported=False,
        )
    name = _estimate(table)
    cells = noise.with_resolution(table[table["estimate"] == name], tables.timing)
    cells["share"] = cells["communication_seconds"] / cells["total_seconds"]
    clear = cells[~cells["within_noise"] & (cells["share"] > 0)]
    fast = next(cells.loc[[cells["total_seconds"].idxmin()]].itertuples())
    sentence = (
        f"By {fmt.estimate(name)}, communication is {fmt.percent(fast.share)} of the shortest "
        f"epoch on several GPUs ({part_of(fast.communication_seconds, fast.total_seconds)}), "
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
    return Finding(sentence, source("communication", *cited))


def bandwidth(tables: StudyTables) -> Finding:
    """The best bandwidth reached and its share of the measured peak."""
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
            f"No bandwidth stands out from noise: by {fmt.estimate(name)}, every communication "
            "time is smaller than the spread of the times it was subtracted from.",
            "bandwidth.csv",
            supported=False,
        )
    best = next(clear.loc[[clear["bandwidth_gb_per_s"].idxmax()]].itertuples())
    sentence = (
        f"By {fmt.estimate(name)}, gradients travel at up to "
        f"{fmt.significant(best.bandwidth_gb_per_s)} GB/s ({fmt.cell_name(best)}), "
    )
    if pd.isna(best.utilization):
        sentence += "a share of the peak that is unknown, as the interconnect was not measured."
    else:
        sentence += (
            f"{fmt.percent(best.utilization)} of the {fmt.significant(best.peak_gb_per_s)} GB/s "
            "measured on the same GPUs."
        )
        if best.utilization > 1:
            sentence += (
                " Above 100 %, the estimate is too low to be a communication time, or the messages "
                "are not those of the measurement (see the audit)."
            )
    return Finding(sentence, source("bandwidth", best))


def _estimate(table: pd.DataFrame) -> str:
    """The estimate a sentence is about: without loading if there is one, else the first."""
    names = list(table["estimate"].unique())
    return PREFERRED_ESTIMATE if PREFERRED_ESTIMATE in names else str(names[0])
