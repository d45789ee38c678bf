"""Question 3.1: where the time goes on several GPUs: computing, communicating, waiting for data."""

from typing import Any

import pandas as pd

from scaling.claims.cells import batch, row_at
from scaling.claims.claim import Claim, Evidence, judge, undecided
from scaling.claims.claim_tables import ClaimTables
from scaling.core import numbers as fmt
from scaling.report.finding import measured
from scaling.tables import noise
from scaling.tables.io import CELL_KEYS, with_single_gpu
from scaling.tables.schema import by_configuration

QUESTION = "Q3.1"
HALF = 0.5
BY_SUBTRACTION = "subtraction_without_loading"
INSTRUMENTS = ["without_communication", "profiler"]
"""Those that see exposed communication, in every strategy that has them."""
LONE_INSTRUMENT = 2.0
SHARES = (
    "Communication that computing does not hide, over the whole epoch: lowest and highest of the "
    "two instruments (iterations without synchronisation, with the range of their repeats; traced "
    "kernels); of one instrument alone half to double that, as not all of its noise is known; "
    "without any, subtraction without loading and its noise. "
)
COMPUTING = SHARES + (
    "Computing: T(1, b) / N without loading, what one GPU takes for the share of one of N, by the "
    "shortest and the longest epoch of that GPU, over the median epoch of the cell. What is none "
    "of these is not told apart: launches, replicas, ranks that wait for each other. Supported: "
    "more than half at the smallest and at the largest batch, by both; refuted: less than half at "
    "one of them, by both; undecided otherwise, or without T(1, b)."
)
FALLS = SHARES + (
    "Supported: at the largest batch both are below both of the smallest batch; refuted: both are "
    "above; undecided: they overlap, or only one batch size has an estimate."
)
AGREE = (
    "In every cell on the most GPUs, subtraction without loading against iterations with less "
    "those without synchronisation or, where a strategy cannot leave it out, against traced "
    "kernels: they agree where they differ by no more than the ranges of the two subtracted times "
    "and of the instrument's repeats together. "
    "Supported: they agree in all cells; refuted: they differ in more than half; undecided: "
    "between, or no cell has both and their noise."
)


def claims(tables: ClaimTables) -> list[Claim]:
    """Three claims for each recipe and strategy on the most GPUs, from communication.csv."""
    table = tables["communication"]
    made = []
    for recipe, strategy, rows in by_configuration(table):
        line, name = f"{recipe}-{strategy}", f"{recipe}/{strategy}"
        known = measured(rows, "communication_seconds")
        cells = _with_shares(known[known["gpus"] == known["gpus"].max()], tables["timing"])
        made += [
            _computing(line, name, cells, tables),
            _falls(line, name, cells, tables),
            _estimates(line, name, cells, tables),
        ]
    if made:
        return made
    lacks = "Where the time goes cannot be said: the study has no cell on several GPUs."
    file = tables.file("communication")
    return [undecided("Q3.1", QUESTION, lacks, file, COMPUTING)]


def _with_shares(rows: pd.DataFrame, timing: pd.DataFrame) -> pd.DataFrame:
    """`rows` with shares of their epochs: loading, and the ends of communication and computing.

    Only the rows of instruments and of the subtraction without loading: that of whole epochs takes
    loading for communication.
    """
    rows = rows[rows["estimate"].isin([BY_SUBTRACTION, *INSTRUMENTS])]
    rows = noise.with_resolution(rows, timing)
    columns = [*CELL_KEYS, "epoch_seconds", "loader_seconds"]
    rows = rows.merge(timing[columns], how="left", on=CELL_KEYS)
    rows = with_single_gpu(rows, timing, "batch_size")
    for end in ("min", "max"):
        single = rows[f"single_epoch_seconds_without_loading_{end}"]
        rows[f"computing_{end}"] = single / rows["gpus"] / rows["epoch_seconds"]
    unsure = rows["resolution_seconds"].fillna(0)
    rows["low"] = (rows["communication_seconds"] - unsure) / rows["epoch_seconds"]
    rows["high"] = (rows["communication_seconds"] + unsure) / rows["epoch_seconds"]
    rows["loading"] = rows["loader_seconds"] / rows["epoch_seconds"]
    return rows[rows["loading"].notna()]


def _by_batch(cells: pd.DataFrame) -> pd.DataFrame:
    """A row for each batch size: the shares, `low` and `high` communication, their estimates."""
    rows = []
    for batch_size, same in cells.groupby("batch_size"):
        read = same[same["estimate"].isin(INSTRUMENTS)]
        chosen = read if len(read) else same
        low, high = chosen["low"].min(), chosen["high"].max()
        if len(read) == 1:
            low, high = sorted((low / LONE_INSTRUMENT, high * LONE_INSTRUMENT))
        rows.append(
            {
                "batch_size": batch_size,
                "low": low,
                "high": high,
                **same[["loading", "computing_min", "computing_max"]].iloc[0],
                "estimates": ", ".join(map(fmt.estimate, chosen["estimate"])),
            }
        )
    return pd.DataFrame(rows)


def _computing(line: str, name: str, cells: pd.DataFrame, tables: ClaimTables) -> Claim:
    """That computing is most of an epoch on the most GPUs."""
    id, file = f"Q3.1-computing-{line}", tables.file("communication")
    parts = _by_batch(cells[cells["computing_min"].notna()])
    if parts.empty:
        lacks = (
            f"{name}: where the time goes cannot be said, as no cell on several GPUs has an "
            "estimate of its communication, its time without loading and that of one GPU."
        )
        return undecided(id, QUESTION, lacks, file, COMPUTING)
    ends = [row_at(parts, index) for index in sorted({0, len(parts) - 1})]
    most = all(cell.computing_min > HALF for cell in ends)
    little = any(cell.computing_max < HALF for cell in ends)
    word = "most" if most else "not always most" if little else "not surely most"
    sentence = (
        f"{name} on {fmt.gpus(int(cells['gpus'].max()))}: computing is {word} of an epoch. "
        + " ".join(map(_parts, ends))
    )
    return Claim(
        id, QUESTION, sentence, judge(most, little), [Evidence(file, _figures(ends), COMPUTING)]
    )


def _falls(line: str, name: str, cells: pd.DataFrame, tables: ClaimTables) -> Claim:
    """That a larger batch communicates for a smaller share of its epoch."""
    id, file = f"Q3.1-falls-{line}", tables.file("communication")
    parts = _by_batch(cells)
    if len(parts) < 2:
        lacks = (
            f"{name}: whether a larger batch communicates less cannot be said, as fewer than two "
            "batch sizes have an estimate on as many GPUs."
        )
        return undecided(id, QUESTION, lacks, file, FALLS)
    small, large = (row_at(parts, index) for index in (0, len(parts) - 1))
    falls, rises = bool(large.high < small.low), bool(large.low > small.high)
    word = "a smaller" if falls else "a larger, not a smaller," if rises else "no clearly smaller"
    sentence = (
        f"{name} on {fmt.gpus(int(cells['gpus'].max()))}: a larger batch spends {word} share of "
        f"its epoch on communication, {_span(large.low, large.high)} with {batch(large)} and "
        f"{_span(small.low, small.high)} with {batch(small)}."
    )
    evidence = [Evidence(file, _figures([small, large]), FALLS)]
    return Claim(id, QUESTION, sentence, judge(falls, rises), evidence)


def _figures(ends: list[Any]) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    for name, cell in zip(("smallest", "largest"), ends, strict=False):
        figures[f"{name}_batch_size"] = cell.batch_size
        figures[f"{name}_estimates"] = cell.estimates
        shares = {
            "computing_share_low": cell.computing_min,
            "computing_share_high": cell.computing_max,
            "communication_share_low": cell.low,
            "communication_share_high": cell.high,
            "loading_share": cell.loading,
        }
        figures |= {f"{name}_{part}": share for part, share in shares.items() if pd.notna(share)}
    return figures


def _parts(cell: Any) -> str:
    low = 1 - cell.loading - cell.high - cell.computing_max
    high = 1 - cell.loading - cell.low - cell.computing_min
    return (
        f"With {batch(cell)}: {_span(cell.computing_min, cell.computing_max)} is computing as one "
        f"GPU does it, {_span(cell.low, cell.high)} communication that computing does not hide, "
        f"{fmt.percent(cell.loading)} waiting for data, {_span(low, high)} none of "
        "these."
    )


def _span(low: float, high: float) -> str:
    ends = fmt.percent(low), fmt.percent(high)
    if low < 0 <= high:
        return f"at most {ends[1]}"
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"


def _estimates(line: str, name: str, cells: pd.DataFrame, tables: ClaimTables) -> Claim:
    """That subtraction, the course's hint, finds what an instrument finds."""
    id, file = f"Q3.1-estimates-{line}", tables.file("communication")
    direct = cells[cells["estimate"].isin(INSTRUMENTS)]
    direct = direct.sort_values("estimate", key=lambda names: names.map(INSTRUMENTS.index))
    seconds = ["communication_seconds", "resolution_seconds"]
    direct = direct.drop_duplicates(CELL_KEYS)[[*CELL_KEYS, *seconds, "estimate"]]
    both = cells[(cells["estimate"] == BY_SUBTRACTION) & cells["resolution_seconds"].notna()]
    both = both.merge(direct, on=CELL_KEYS, suffixes=("", "_direct"))
    if both.empty:
        lacks = (
            f"{name}: whether subtracting T(1, b) / N gives the communication cannot be said, as "
            "no cell has both the subtraction with its noise and the reading of an instrument."
        )
        return undecided(id, QUESTION, lacks, file, AGREE)
    both["apart"] = both["communication_seconds"] - both["communication_seconds_direct"]
    unsure = both["resolution_seconds"] + both["resolution_seconds_direct"].fillna(0)
    differ = both[both["apart"].abs() > unsure]
    worst = row_at(both, (both["apart"].abs() - unsure).idxmax())
    agree, mostly_not = differ.empty, 2 * len(differ) > len(both)
    count = fmt.plural(len(both), "cell")
    if agree:
        word = f"is, within its noise, what an instrument reads in all of {count}"
    elif mostly_not:
        word = f"is not what an instrument reads in {len(differ)} of {count}"
    else:
        word = f"is what an instrument reads, but not in {len(differ)} of {count}"
    sentence = (
        f"{name} on {fmt.gpus(int(worst.gpus))}: communication by subtraction {word}. They are "
        f"furthest apart with {batch(worst)}: {fmt.significant(worst.communication_seconds)} ± "
        f"{fmt.seconds(worst.resolution_seconds)} by subtraction, "
        f"{_with_noise(worst)} by “{fmt.estimate(worst.estimate_direct)}”."
    )
    figures = {
        "cells": len(both),
        "differ": len(differ),
        "worst_batch_size": worst.batch_size,
        "worst_subtraction_seconds": worst.communication_seconds,
        "worst_resolution_seconds": worst.resolution_seconds,
        "worst_instrument": worst.estimate_direct,
        "worst_instrument_seconds": worst.communication_seconds_direct,
    }
    if pd.notna(worst.resolution_seconds_direct):
        figures["worst_instrument_resolution_seconds"] = worst.resolution_seconds_direct
    return Claim(id, QUESTION, sentence, judge(agree, mostly_not), [Evidence(file, figures, AGREE)])


def _with_noise(row: Any) -> str:
    """The instrument's seconds, with the range of its repeats where it has some."""
    if pd.isna(row.resolution_seconds_direct):
        return fmt.seconds(row.communication_seconds_direct)
    return (
        f"{fmt.significant(row.communication_seconds_direct)} ± "
        f"{fmt.seconds(row.resolution_seconds_direct)}"
    )
