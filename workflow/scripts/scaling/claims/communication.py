"""Question 3: where the time goes on several GPUs, and how much of the link is used."""

from typing import Any

import pandas as pd

from scaling.claims.claim import Claim
from scaling.claims.claim_tables import ClaimTables, columns_of, extremes, measured, row_at
from scaling.core import numbers as fmt
from scaling.core.grid import CELL_KEYS
from scaling.tables import noise
from scaling.tables.limits import GB
from scaling.tables.schema import by_configuration
from scaling.tables.timing import with_single_gpu

HALF = 0.5
BY_SUBTRACTION = "subtraction_without_loading"
INSTRUMENTS = ["without_communication", "profiler"]
"""Those that see exposed communication, in every strategy that has them."""
LONE_INSTRUMENT = 2.0
"""The noise of a single instrument, not all of which is known: half to double its figure."""


def claims(tables: ClaimTables) -> list[Claim]:
    """Five claims for each recipe and strategy on the most GPUs: where time goes, then the link."""
    parts = []
    for recipe, strategy, rows in by_configuration(tables["communication"]):
        name, known = f"{recipe}/{strategy}", measured(rows, "communication_seconds")
        cells = _with_shares(known[known["gpus"] == known["gpus"].max()], tables["timing"])
        parts += [
            _computing(name, cells, tables),
            _falls(name, cells, tables),
            _estimates(name, cells, tables),
        ]
    link = []
    for recipe, strategy, rows in by_configuration(tables["bandwidth"]):
        name, most = f"{recipe}/{strategy}", rows[rows["gpus"] == rows["gpus"].max()]
        link += [_over_an_epoch(name, most, tables), _travelling(name, most, tables)]
    parts = parts or [tables.missing("Q3.1", "one_gpu")]
    return parts + (link or [tables.missing("Q3.2", "one_gpu")])


def _with_shares(rows: pd.DataFrame, timing: pd.DataFrame) -> pd.DataFrame:
    """Add shares of the epochs: loading, and the ends of communication and of computing.

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
        traced = same[same["estimate"].isin(INSTRUMENTS)]
        chosen = traced if len(traced) else same
        low, high = chosen["low"].min(), chosen["high"].max()
        if len(traced) == 1:
            low, high = sorted((low / LONE_INSTRUMENT, high * LONE_INSTRUMENT))
        shares = same[["loading", "computing_min", "computing_max"]].iloc[0]
        estimates = ", ".join(map(fmt.estimate, chosen["estimate"]))
        rows.append(
            {"batch_size": batch_size, "low": low, "high": high, **shares, "estimates": estimates}
        )
    return pd.DataFrame(rows)


def _share_figures(ends: list[Any]) -> dict[str, Any]:
    columns = {
        "computing_share_low": "computing_min",
        "computing_share_high": "computing_max",
        "communication_share_low": "low",
        "communication_share_high": "high",
        "loading_share": "loading",
    }
    figures: dict[str, Any] = {}
    for name, cell in zip(("smallest", "largest"), ends, strict=False):
        figures |= columns_of(("batch_size", "estimates"), **{name: cell})
        shares = {part: getattr(cell, column) for part, column in columns.items()}
        figures |= {f"{name}_{part}": share for part, share in shares.items() if pd.notna(share)}
    return figures


def _computing(name: str, cells: pd.DataFrame, tables: ClaimTables) -> Claim:
    """That computing is most of an epoch on the most GPUs."""
    parts = _by_batch(cells[cells["computing_min"].notna()])
    if parts.empty:
        return tables.missing("Q3.1-computing", "no_estimate", name)
    ends = [row_at(parts, index) for index in sorted({0, len(parts) - 1})]
    return tables.claim(
        "Q3.1-computing",
        _share_figures(ends),
        name=name,
        holds=all(cell.computing_min > HALF for cell in ends),
        fails=any(cell.computing_max < HALF for cell in ends),
        gpus=cells["gpus"].max(),
        ends=ends,
    )


def _falls(name: str, cells: pd.DataFrame, tables: ClaimTables) -> Claim:
    """That a larger batch communicates for a smaller share of its epoch."""
    parts = _by_batch(cells)
    if len(parts) < 2:
        return tables.missing("Q3.1-falls", "few_batches", name)
    small, large = (row_at(parts, index) for index in (0, len(parts) - 1))
    return tables.claim(
        "Q3.1-falls",
        _share_figures([small, large]),
        name=name,
        holds=large.high < small.low,
        fails=large.low > small.high,
        gpus=cells["gpus"].max(),
        small=small,
        large=large,
    )


def _estimates(name: str, cells: pd.DataFrame, tables: ClaimTables) -> Claim:
    """That subtraction, the course's hint, finds what an instrument finds."""
    direct = cells[cells["estimate"].isin(INSTRUMENTS)]
    direct = direct.sort_values("estimate", key=lambda names: names.map(INSTRUMENTS.index))
    seconds = ["communication_seconds", "resolution_seconds"]
    direct = direct.drop_duplicates(CELL_KEYS)[[*CELL_KEYS, *seconds, "estimate"]]
    both = cells[(cells["estimate"] == BY_SUBTRACTION) & cells["resolution_seconds"].notna()]
    both = both.merge(direct, on=CELL_KEYS, suffixes=("", "_direct"))
    if both.empty:
        return tables.missing("Q3.1-estimates", "no_pair", name)
    apart = (both["communication_seconds"] - both["communication_seconds_direct"]).abs()
    unsure = both["resolution_seconds"] + both["resolution_seconds_direct"].fillna(0)
    differ = int((apart > unsure).sum())
    worst = row_at(both, (apart - unsure).idxmax())
    figures = {
        "cells": len(both),
        "differ": differ,
        "worst_batch_size": worst.batch_size,
        "worst_subtraction_seconds": worst.communication_seconds,
        "worst_resolution_seconds": worst.resolution_seconds,
        "worst_instrument": worst.estimate_direct,
        "worst_instrument_seconds": worst.communication_seconds_direct,
    }
    if pd.notna(worst.resolution_seconds_direct):
        figures["worst_instrument_resolution_seconds"] = worst.resolution_seconds_direct
    return tables.claim(
        "Q3.1-estimates",
        figures,
        name=name,
        holds=differ == 0,
        fails=2 * differ > len(both),
        worst=worst,
    )


def _over_an_epoch(name: str, rows: pd.DataFrame, tables: ClaimTables) -> Claim:
    """That the link is idle for most of what it could carry in an epoch."""
    columns = [*CELL_KEYS, "epoch_seconds", "epoch_seconds_min", "epoch_seconds_max"]
    cells = measured(rows, "bytes_per_epoch").drop_duplicates(CELL_KEYS)
    cells = cells[cells["peak_gb_per_s"].notna()].merge(
        tables["timing"][columns], how="left", on=CELL_KEYS
    )
    if cells.empty:
        return tables.missing("Q3.2-epoch", "no_peak", name)
    carried = cells["bytes_per_epoch"] / GB / cells["peak_gb_per_s"]
    for end, seconds in (("", ""), ("_low", "_max"), ("_high", "_min")):
        cells[f"used{end}"] = carried / cells[f"epoch_seconds{seconds}"]
    least, most = extremes(cells, "used")
    shown = ("batch_size", "bytes_per_epoch", "used", "used_low", "used_high")
    figures = columns_of(shown, most=most, least=least)
    return tables.claim(
        "Q3.2-epoch",
        figures | {"peak_gb_per_s": most.peak_gb_per_s},
        name=name,
        holds=(cells["used_high"] < HALF).all(),
        fails=(cells["used_low"] >= HALF).any(),
        least=least,
        most=most,
    )


def _travelling(name: str, rows: pd.DataFrame, tables: ClaimTables) -> Claim:
    """That while gradients travel, they use at least half of what the link can carry."""
    cells = noise.with_resolution(measured(rows, "utilization"), tables["timing"])
    real = cells[~cells["within_noise"] & (cells["utilization"] <= 1)]
    found = [real[real["estimate"] == estimate] for estimate in ("profiler", BY_SUBTRACTION)]
    known = next((one for one in found if len(one)), None)
    if known is None:
        return tables.missing("Q3.2-travelling", "no_estimate", name)
    worst, best = extremes(known, "utilization")
    traced, enough = best.estimate == "profiler", best.utilization >= HALF
    shown = ("batch_size", "bandwidth_gb_per_s", "peak_gb_per_s", "utilization")
    return tables.claim(
        "Q3.2-travelling",
        {
            "estimate": best.estimate,
            "cells": len(known),
            **columns_of(shown, best=best, worst=worst),
        },
        name=name,
        holds=enough,
        fails=traced and not enough,
        best=best,
        worst=worst,
        traced=traced,
    )
