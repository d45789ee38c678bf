"""Printed against derived: which definition gives a printed figure, and which mistake it is."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from statistics import median
from typing import Any

import pandas as pd

from scaling import tables
from scaling.communication import SUBTRACTIONS
from scaling.definitions import DEFINITIONS, OF_ANOTHER_ROW, Definition, Facts
from scaling.grid import CELL_KEYS
from scaling.published import PRINTED, PublishedStudy

COLUMNS = [
    *(*CELL_KEYS, "quantity", "printed", "last_digit"),
    *("definition", "by_definition", "reproduced", "explained_by"),
    *("derived", "agrees", "factor", "mistakes"),
    *("implied_single_seconds", "single_seconds"),
]
NEARLY = 0.02
"""Relative difference that rounding on the way may explain; the mistakes make larger ones."""


@dataclass(frozen=True)
class Figure:
    """One printed figure: its cell's row and facts, and our figure for it (NaN: underivable)."""

    row: Any
    facts: Facts
    quantity: str
    printed: Decimal
    derived: float


def printed_against_derived(
    study: PublishedStudy,
    timing: pd.DataFrame,
    speedup: pd.DataFrame,
    communication: pd.DataFrame,
    bandwidth: pd.DataFrame,
) -> pd.DataFrame:
    """One row per printed figure of `study`, beside the tables derived from its times, `COLUMNS`.

    A time on one GPU that the study gives a second time counts as printed, as `epoch_seconds`.
    Where a study separates loading, ours are the estimates without it, if they have a value.

    The definition of a study's quantity is the one that reproduces most of its figures (at least
    half; ours first among equals), as few documents state theirs. `reproduced` and `agrees` say
    whether that definition and ours give the printed figure: `exactly` (within one unit of its
    last digit), `nearly` (within `NEARLY`) or `no`; empty where there is nothing to compare with.
    `explained_by` is the definition that gives the figure exactly, not always the study's own.
    `factor` is printed / derived, `mistakes` names of `scaling.mistakes` joined by ";", and
    `implied_single_seconds` the T(1,b) that a time would come from which no definition reproduces,
    beside `single_seconds`, that of the study's own table.
    """
    figures = list(_figures(study, timing, speedup, communication, bandwidth))
    rows = []
    for strategy in study.strategies:
        ours = [figure for figure in figures if figure.facts.strategy == strategy]
        for quantity in PRINTED:
            same = [figure for figure in ours if figure.quantity == quantity]
            choices = (
                [_typed_peak(ours)] if quantity == "utilization_percent" else DEFINITIONS[quantity]
            )
            own = _own_definition(same, choices)
            rows += [_compare(figure, own, choices) for figure in same]
    rows += _repeated(study, timing)
    return tables.arrange(pd.DataFrame(rows, columns=COLUMNS), COLUMNS)


def read(path: Path) -> pd.DataFrame:
    """The table that was written to `path`; see `tables.read`."""
    table = tables.read(path, COLUMNS)
    words = ["definition", "reproduced", "explained_by", "agrees", "mistakes"]
    return table.astype(dict.fromkeys(words, object)).fillna(dict.fromkeys(words, ""))


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


def _own_definition(figures: list[Figure], choices: list[Definition]) -> Definition | None:
    # On one GPU the definitions agree, so that it tells nothing.
    several = [figure for figure in figures if figure.facts.gpus > 1]
    chosen = [definition for definition in choices if definition.chosen]
    if not several or not chosen:
        return None
    votes = [
        sum(closeness(d.value(f.facts), f.printed) == "exactly" for f in several) for d in chosen
    ]
    best = max(votes)
    return chosen[votes.index(best)] if 2 * best >= len(several) else None


def _compare(figure: Figure, own: Definition | None, choices: list[Definition]) -> dict[str, Any]:
    by_definition = own.value(figure.facts) if own else math.nan
    agrees = closeness(figure.derived, figure.printed)
    exact = _explanation(figure, ([own] if own else []) + choices)
    if agrees == "exactly" or (exact and agrees == "nearly"):
        mistakes: tuple[str, ...] = ()
    elif exact:
        mistakes = exact.mistakes
    else:
        mistakes = _unexplained(figure, own, agrees)
    implied = _implied_single(figure) if "other_single_time" in mistakes else math.nan
    return {
        **{key: getattr(figure.row, key) for key in CELL_KEYS},
        "quantity": figure.quantity,
        "printed": float(figure.printed),
        "last_digit": last_digit(figure.printed),
        "definition": own.name if own else "",
        "by_definition": by_definition,
        "reproduced": closeness(by_definition, figure.printed),
        "explained_by": exact.name if exact else "",
        "derived": figure.derived,
        "agrees": agrees,
        "factor": float(figure.printed) / figure.derived if figure.derived else math.nan,
        "mistakes": ";".join(mistakes),
        "implied_single_seconds": implied,
        "single_seconds": math.nan if math.isnan(implied) else figure.facts.single,
    }


def _explanation(figure: Figure, choices: list[Definition]) -> Definition | None:
    """The first definition that gives the figure exactly; last, the time of another row."""
    printed = float(figure.printed)
    other = OF_ANOTHER_ROW.get(figure.quantity)
    if other:
        name, value = other
        choices = [*choices, Definition(name, lambda cell: value(cell, printed), ("another_row",))]
    return next(
        (d for d in choices if closeness(d.value(figure.facts), figure.printed) == "exactly"), None
    )


def _unexplained(figure: Figure, own: Definition | None, agrees: str) -> tuple[str, ...]:
    """The mistakes of a figure that no definition gives exactly."""
    if not math.isnan(_implied_single(figure)):
        return ("other_single_time",)
    if agrees == "nearly":
        return ()
    if own and closeness(own.value(figure.facts), figure.printed) == "nearly":
        return own.mistakes
    return ("unexplained",)


def _implied_single(figure: Figure) -> float:
    """The T(1,b) from which a printed compute or communication time would follow; else NaN."""
    gpus, printed = figure.facts.gpus, float(figure.printed)
    if figure.quantity == "compute_seconds":
        return gpus * printed
    if figure.quantity == "communication_seconds":
        return gpus * (figure.facts.seconds - printed)
    return math.nan


def _typed_peak(figures: list[Figure]) -> Definition:
    """Utilization as bandwidth over one constant: the one that fits the printed shares best.

    The bandwidth is the study's own, by its own definition, before it was rounded.
    """
    rates = {f.row: f for f in figures if f.quantity == "bandwidth_gb_per_s"}
    own = _own_definition(list(rates.values()), DEFINITIONS["bandwidth_gb_per_s"])
    shares = [f for f in figures if f.quantity == "utilization_percent" and f.printed]
    value = own.value if own else (lambda _: math.nan)
    peaks = [100 * value(f.facts) / float(f.printed) for f in shares]
    peak = median(peaks) if peaks else math.nan
    return Definition(
        f"bandwidth / {peak:.3g} GB/s",
        lambda facts: 100 * value(facts) / peak,
        ("typed_peak",),
    )


def _repeated(study: PublishedStudy, timing: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """The times of the study's sweep for cells that have another time already."""
    single = timing[(timing["gpus"] == 1) & timing["epoch_seconds"].notna()]
    cells = {row.batch_size: row for row in single.itertuples()}
    for again in study.sweep.dropna(subset="epoch_seconds").itertuples():
        row = cells[again.batch_size]
        printed = Decimal(str(again.epoch_seconds))
        agrees = closeness(row.epoch_seconds, printed)
        yield {
            **{key: getattr(row, key) for key in CELL_KEYS},
            "quantity": "epoch_seconds",
            "printed": again.epoch_seconds,
            "last_digit": last_digit(printed),
            "derived": row.epoch_seconds,
            "explained_by": "",
            "agrees": agrees,
            "factor": again.epoch_seconds / row.epoch_seconds,
            "mistakes": "repeated_single_time" if agrees == "no" else "",
        }


def _figures(
    study: PublishedStudy,
    timing: pd.DataFrame,
    speedup: pd.DataFrame,
    communication: pd.DataFrame,
    bandwidth: pd.DataFrame,
) -> Iterator[Figure]:
    printed = {column: quantity for quantity, column in PRINTED.items()}
    derived = {
        "speedup": _by_cell(speedup, "speedup"),
        "compute_seconds": _by_cell(communication, "compute_seconds"),
        "communication_seconds": _by_cell(communication, "communication_seconds"),
        "bandwidth_gb_per_s": _by_cell(bandwidth, "bandwidth_gb_per_s"),
        "utilization_percent": {
            cell: 100 * share for cell, share in _by_cell(bandwidth, "utilization").items()
        },
    }
    times = _by_cell(timing, "epoch_seconds")
    without = _by_cell(timing, "epoch_seconds_without_loading")
    iterations = _by_cell(timing, "iterations")
    for row in study.rows.assign(recipe=study.model).itertuples():
        strategy, gpus, batch = cell = row.strategy, row.gpus, row.batch_size
        singles = {key[2]: time for key, time in times.items() if key[:2] == (strategy, 1)}
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
            communication_seconds=_number(row.printed_communication_seconds),
        )
        for column, quantity in printed.items():
            figure = getattr(row, column)
            if figure is not None:
                yield Figure(row, facts, quantity, figure, derived[quantity].get(cell, math.nan))


def _by_cell(table: pd.DataFrame, column: str) -> dict[tuple[str, int, int], float]:
    """The values of `column` by cell; of the estimates, the last by subtraction that has one."""
    if "estimate" in table:
        order = list(SUBTRACTIONS)
        table = table[table["estimate"].isin(order)]
        table = table.sort_values("estimate", key=lambda names: names.map(order.index))
    known = table.dropna(subset=column)
    return {
        (row.strategy, row.gpus, row.batch_size): value
        for row, value in zip(known.itertuples(), known[column], strict=True)
    }


def _number(figure: Decimal | None) -> float:
    return math.nan if figure is None else float(figure)
