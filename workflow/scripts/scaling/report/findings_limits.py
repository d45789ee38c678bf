"""Sentence on physical limits: how near a cell comes to the machine's matrix product peak."""

from typing import Any

import pandas as pd

from scaling.core import numbers as fmt
from scaling.core.grid import CELL_KEYS
from scaling.report.finding import Finding, measured, source
from scaling.report.sections.limits import rate
from scaling.tables import noise
from scaling.tables.schema import StudyTables


def utilization(tables: StudyTables) -> Finding:
    """The cell that uses most of the measured peak, and what the rest of its epoch is."""
    cells = measured(tables.utilization, "utilization")
    if cells.empty:
        lacking = (
            "the machine's matrix product peak was not measured"
            if tables.peaks.empty
            else "no cell has both a time and a peak of its precision"
        )
        return Finding(
            f"How near training comes to the machine's limits cannot be said: {lacking}.",
            "utilization.csv",
            supported=False,
        )
    best = next(cells.loc[[cells["utilization"].idxmax()]].itertuples())
    reached, peak = (
        rate(value, "FLOP/s")
        for value in (best.flops_per_second_per_gpu, best.peak_flops_per_second)
    )
    sentence = (
        f"At best, training uses {fmt.percent(best.utilization)} of the measured {best.precision} "
        f"matrix product peak, {reached} of {peak} per GPU: {fmt.cell_name(best)}, at "
        f"{fmt.significant(best.images_per_second)} images/s. The rest of that epoch: waiting for "
        f"data {fmt.percent(best.loading_share)}, "
    )
    if pd.notna(best.communication_share):
        sentence += (
            f"communication {fmt.percent(best.communication_share)} "
            f"(by “{fmt.estimate(best.communication_estimate)}”"
            f"{', within noise' if _within_noise(best, tables) else ''}), "
        )
    sentence += f"everything else {fmt.percent(best.other_share)}."
    if pd.notna(best.power_capped_share):
        sentence += (
            f" For {fmt.percent(best.power_capped_share)} of its measured epochs a GPU was held "
            "back by its power limit."
        )
    return Finding(sentence, source("utilization", best))


def _within_noise(cell: Any, tables: StudyTables) -> bool:
    """Whether the communication of `cell`, by the estimate it names, is within its noise."""
    doubt = noise.with_resolution(tables.communication, tables.timing)
    own = doubt["estimate"] == cell.communication_estimate
    for key in CELL_KEYS:
        own &= doubt[key] == getattr(cell, key)
    return bool(doubt.loc[own, "within_noise"].any())
