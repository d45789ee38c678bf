"""Question 3.2: how much of the link between the GPUs is used, over an epoch and while it is."""

from typing import Any

import pandas as pd

from scaling.claims.cells import batch, row_at
from scaling.claims.claim import Claim, Evidence, judge, undecided
from scaling.claims.claim_tables import ClaimTables
from scaling.core import numbers as fmt
from scaling.report.finding import measured
from scaling.tables import noise
from scaling.tables.io import CELL_KEYS, GB
from scaling.tables.schema import by_configuration

QUESTION = "Q3.2"
HALF = 0.5
PREFERRED = ["profiler", "subtraction_without_loading"]
EPOCH = (
    "Bytes of an epoch over the shortest and over the longest measured epoch and over the peak "
    "measured in the same study, in every cell on the most GPUs. Supported: below half in all; "
    "refuted: half or more in one; undecided: one has half between its two figures, or there is "
    "no peak."
)
TRAVELLING = (
    "Bytes of an epoch over the seconds of its communication kernels, those behind computation "
    "included, and over the peak measured in the same study: the cell on the most GPUs in which "
    "it is highest. Without a trace, by subtraction without loading beyond its noise, which counts "
    "all that does not shrink with N, so that the link may be used better. More than the peak is "
    "no communication time and left out. Supported: half or more; refuted: less, by a trace; "
    "undecided: less, by subtraction, or none is left."
)


def claims(tables: ClaimTables) -> list[Claim]:
    """Two claims for each recipe and strategy on the most GPUs, from bandwidth.csv."""
    made = []
    for recipe, strategy, rows in by_configuration(tables["bandwidth"]):
        line, name = f"{recipe}-{strategy}", f"{recipe}/{strategy}"
        most = rows[rows["gpus"] == rows["gpus"].max()]
        made += [
            _idle(f"Q3.2-epoch-{line}", name, most, tables),
            _travelling(f"Q3.2-travelling-{line}", name, most, tables),
        ]
    if made:
        return made
    lacks = (
        "How much of the link is used cannot be said: the study has no cell on several GPUs, so "
        "nothing travels."
    )
    return [undecided("Q3.2", QUESTION, lacks, tables.file("bandwidth"), EPOCH)]


def _idle(id: str, name: str, rows: pd.DataFrame, tables: ClaimTables) -> Claim:
    """That the link is idle for most of what it could carry in an epoch."""
    file = tables.file("bandwidth")
    columns = [*CELL_KEYS, "epoch_seconds", "epoch_seconds_min", "epoch_seconds_max"]
    cells = measured(rows, "bytes_per_epoch").drop_duplicates(CELL_KEYS)
    cells = cells[cells["peak_gb_per_s"].notna()].merge(
        tables["timing"][columns], how="left", on=CELL_KEYS
    )
    if cells.empty:
        lacks = (
            f"{name}: how much of the link an epoch uses cannot be said, as the interconnect was "
            "not measured on as many GPUs, or no cell has a time."
        )
        return undecided(id, QUESTION, lacks, file, EPOCH)
    carried = cells["bytes_per_epoch"] / GB / cells["peak_gb_per_s"]
    for end, seconds in (("", ""), ("_low", "_max"), ("_high", "_min")):
        cells[f"used{end}"] = carried / cells[f"epoch_seconds{seconds}"]
    most = row_at(cells, cells["used"].idxmax())
    least = row_at(cells, cells["used"].idxmin())
    holds, fails = bool((cells["used_high"] < HALF).all()), bool((cells["used_low"] >= HALF).any())
    word = "less than half" if holds else "half or more" if fails else "not surely less than half"
    sentence = (
        f"{name} on {fmt.gpus(int(most.gpus))}: over an epoch {word} of the link is used, at most "
        f"{fmt.percent(most.used)} of the {fmt.significant(most.peak_gb_per_s)} GB/s measured: "
        f"{fmt.data(most.bytes_per_epoch)} in {fmt.seconds(most.epoch_seconds)} with {batch(most)}"
    )
    if least.Index != most.Index:
        sentence += f", {fmt.percent(least.used)} with {batch(least)}"
    figures = {
        f"{which}_{figure}": getattr(cell, figure)
        for which, cell in (("most", most), ("least", least))
        for figure in ("batch_size", "bytes_per_epoch", "used", "used_low", "used_high")
    }
    return Claim(
        id,
        QUESTION,
        f"{sentence}.",
        judge(holds, fails),
        [Evidence(file, figures | {"peak_gb_per_s": most.peak_gb_per_s}, EPOCH)],
    )


def _travelling(id: str, name: str, rows: pd.DataFrame, tables: ClaimTables) -> Claim:
    """That while gradients travel, they use at least half of what the link can carry."""
    file = tables.file("bandwidth")
    cells = noise.with_resolution(measured(rows, "utilization"), tables["timing"])
    real = cells[~cells["within_noise"] & (cells["utilization"] <= 1)]
    found = [real[real["estimate"] == estimate] for estimate in PREFERRED]
    known = next((one for one in found if len(one)), None)
    if known is None:
        lacks = (
            f"{name}: how fast gradients travel cannot be said, as no communication was traced, "
            "and by subtraction none is above its noise and below the peak, or there is no peak."
        )
        return undecided(id, QUESTION, lacks, file, TRAVELLING)
    best, worst = (row_at(known, index) for index in _extremes(known["utilization"]))
    holds, traced = bool(best.utilization >= HALF), best.estimate == "profiler"
    word = "at least half" if holds else "less than half"
    sentence = (
        f"{name} on {fmt.gpus(int(best.gpus))}: while gradients travel fastest they use {word} of "
        f"the link, {fmt.significant(best.bandwidth_gb_per_s)} GB/s or "
        f"{fmt.percent(best.utilization)} of the {fmt.significant(best.peak_gb_per_s)} GB/s "
        f"measured with {batch(best)}"
    )
    if worst.Index != best.Index:
        sentence += f", {fmt.percent(worst.utilization)} with {batch(worst)}"
    counted = "waiting for the slowest GPU" if traced else "all that does not shrink with N"
    figures: dict[str, Any] = {"estimate": best.estimate, "cells": len(known)}
    for which, cell in (("best", best), ("worst", worst)):
        for figure in ("batch_size", "bandwidth_gb_per_s", "peak_gb_per_s", "utilization"):
            figures[f"{which}_{figure}"] = getattr(cell, figure)
    return Claim(
        id,
        QUESTION,
        f"{sentence}, by “{fmt.estimate(best.estimate)}” ({counted} counted).",
        judge(holds, traced and not holds),
        [Evidence(file, figures, TRAVELLING)],
    )


def _extremes(values: pd.Series) -> tuple[Any, Any]:
    return values.idxmax(), values.idxmin()
