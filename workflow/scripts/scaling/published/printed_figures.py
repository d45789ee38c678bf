"""Every figure that a document printed, with the facts of its cell and our figure for it."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pandas as pd

from scaling.published.definitions import Facts
from scaling.published.study import PRINTED, PublishedStudy
from scaling.tables.comparison import by_one_estimate

NEARLY = 0.02
"""Relative difference that rounding on the way may explain; the mistakes make larger ones."""
WITHIN = f"within {100 * NEARLY:g} %"


@dataclass(frozen=True)
class Figure:
    """One printed figure: its cell's row and facts, and our figure for it.

    `derived` is NaN where ours cannot be derived, and `note` then says why.
    """

    row: Any
    facts: Facts
    quantity: str
    printed: Decimal
    derived: float
    note: str


def closeness(value: float, printed: Decimal) -> str:
    """`exactly`, `nearly` or `no`; empty when `value` is unknown.

    Exactly: within one unit of the last printed digit, as documents round and truncate alike.
    """
    if math.isnan(value):
        return ""
    difference = abs(value - float(printed))
    if difference <= last_digit(printed) * (1 + 1e-9):
        return "exactly"
    return "nearly" if difference <= NEARLY * abs(value) else "no"


def last_digit(printed: Decimal) -> float:
    """One unit of the last digit: 0.001 for 0.064, 1 for 32."""
    return 10.0 ** int(printed.as_tuple().exponent)


def figures(
    study: PublishedStudy, timing: pd.DataFrame, tables: Mapping[str, pd.DataFrame]
) -> Iterator[Figure]:
    """Every printed figure of `study`, beside the `tables` derived from its times.

    Ours are by one estimate for each strategy, see `by_one_estimate`.
    """
    parts, rates = (by_one_estimate(tables[name]) for name in ("communication", "bandwidth"))
    rates = rates.assign(utilization_percent=100 * rates["utilization"])
    # The rest of a speedup's note is about other views of it.
    first = tables["speedup"]["note"].fillna("").str.partition("; ")[0]
    beside = [tables["speedup"].assign(note=first), parts, parts, rates, rates]
    by_quantity = dict(zip(PRINTED, beside, strict=True))
    derived = {quantity: _by_cell(table, quantity) for quantity, table in by_quantity.items()}
    notes = {quantity: _by_cell(table, "note") for quantity, table in by_quantity.items()}
    times, without, iterations = (
        _by_cell(timing, column)
        for column in ("epoch_seconds", "epoch_seconds_without_loading", "iterations")
    )
    for row in study.rows.assign(recipe=study.model).itertuples():
        strategy, gpus, batch = cell = row.strategy, row.gpus, row.batch_size
        singles = {key[2]: time for key, time in times.items() if key[:2] == (strategy, 1)}
        communication = _number(row.printed_communication_seconds)
        ours = derived["communication_seconds"].get(cell, math.nan)
        facts = Facts(
            strategy=strategy,
            gpus=gpus,
            batch_size=batch,
            seconds=times.get(cell, math.nan),
            seconds_without_loading=without.get(cell, math.nan),
            single=singles.get(batch, math.nan),
            single_without_loading=without.get((strategy, 1, batch), math.nan),
            double=times.get((strategy, 2, batch), math.nan),
            first_single=singles[min(singles)] if singles else math.nan,
            other_singles=tuple(time for size, time in singles.items() if size != batch),
            iterations=iterations.get(cell, math.nan),
            gradient_bytes=study.gradient_bytes,
            compute_seconds=_number(row.printed_compute_seconds),
            communication_seconds=communication,
            moving_seconds=ours if math.isnan(communication) else communication,
        )
        for quantity, column in PRINTED.items():
            figure, value = getattr(row, column), derived[quantity].get(cell, math.nan)
            if figure is not None:
                note = notes[quantity].get(cell, "") if math.isnan(value) else ""
                yield Figure(row, facts, quantity, figure, value, note)


def _by_cell(table: pd.DataFrame, column: str) -> dict[Any, Any]:
    """The values of `column` by strategy, GPUs and batch size, where there are any."""
    known = table.dropna(subset=column).set_index(["strategy", "gpus", "batch_size"])
    return dict(known[column].items())


def _number(figure: Decimal | None) -> float:
    return math.nan if figure is None else float(figure)
