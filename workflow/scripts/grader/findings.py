"""What is to be said of a study: a finding for each cause, with its cells and what to do."""

from bisect import bisect_right
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from grader.causes import causes
from grader.cells import FORMULAS, UNKNOWN, Cells, of_strategy
from grader.definitions import MISTAKES, SEVERITIES, Verdict, verdicts
from grader.readings import Cause, Wrong
from grader.study import PRINTED, TIMES, PublishedStudy

COLUMNS = ["number", "severity", "cause", "strategy", "gpus", "batch_size", "quantity", "found"]
COLUMNS += ["expected_low", "expected_high", "explains", "suspects", "cells", "sentence", "advice"]
LISTED = 200
"""Cells of a finding that have a row: a study has a few dozen."""
FIXED, TIGHT = 0.03, 0.25
"""A part of T(1,b) that is worth a remark, and how much of it the fit may be off."""


def judge(study: PublishedStudy, train_images: int, ring: bool = False) -> pd.DataFrame:
    """Judge every time and figure of `study`; `ring` as `definitions.verdicts` has it.

    A row for each of the first `LISTED` cells of each finding, errors first: what stands there,
    and between what it should be. A finding `explains` so many of `suspects` wrong figures.
    """
    stated = study.description.definitions.model_dump(exclude_none=True)
    told = list[pd.DataFrame]()
    with np.errstate(all="ignore"):
        for strategy in study.strategies:
            cells, named = _as_seconds(of_strategy(study, strategy, train_images))
            found = verdicts(cells, stated, ring)
            explained, left = causes(found)
            cells = found["speedup"].cells
            for cause in explained:
                # What a wrong time implies is no finding of its own.
                cells = cells.with_values(
                    {name: UNKNOWN.where(cause.cells, cells.columns[name]) for name in cause.times}
                )
            named += [*explained, *_by_formula(cells, found, left), *_fixed_part(cells)]
            told += [_told(cells, one) for one in named if one.cells.any()]
            gaps = pd.DataFrame(_missing(cells), columns=["gpus", "batch_size"])
            told += [gaps.assign(strategy=strategy, **_said("missing_cell"))] * (len(gaps) > 0)
    told.sort(key=lambda table: SEVERITIES.index(table["severity"].iloc[0]))
    rows = [each[:LISTED].assign(number=i, cells=len(each)) for i, each in enumerate(told, 1)]
    nothing = pd.DataFrame(columns=COLUMNS)
    return pd.concat(rows, ignore_index=True).reindex(columns=COLUMNS) if rows else nothing


def _told(cells: Cells, cause: Cause) -> pd.DataFrame:
    low, high = cause.expected.where(np.isfinite(cause.expected.high), UNKNOWN)
    return pd.DataFrame({"gpus": cells.gpus, "batch_size": cells.batch}).assign(
        strategy=cells.strategy,
        found=cause.found.middle,
        **{"expected_low": low, "expected_high": high},
        suspects=cause.suspects,
        explains=sum(int(each.sum()) for each in cause.resolved.values()),
        **_said(cause.name, cause.quantity, cause.rule),
    )[cause.cells]


def _said(names: str, quantity: str = "", rule: str = "") -> dict[str, Any]:
    """What a finding of one mistake says, or of several joined by ";", as grave as the gravest."""
    found = [MISTAKES[name] for name in names.split(";")]
    rules = rule.split(";") if rule.count(";") == len(found) - 1 else [rule] * len(found)
    sentences = (one.sentence.format(rule=own) for one, own in zip(found, rules, strict=True))
    word = FORMULAS["words"].get(quantity)
    return {
        "cause": names,
        "quantity": quantity,
        "sentence": (f"the printed {word} " if word else "") + "; it ".join(sentences),
        "severity": min((one.severity for one in found), key=SEVERITIES.index),
        "advice": " ".join(filter(None, (one.advice for one in found))),
    }


def _as_seconds(cells: Cells) -> tuple[Cells, list[Cause]]:
    """The cells with seconds where they have a throughput in the place of a time, and where."""
    name, named = "throughput_as_time", []
    for column, when in MISTAKES[name].when.items():
        printed = cells.columns[column]
        if cells.evaluate(when).any():
            seconds = cells.names["images"] / printed
            # The slowest epoch has the lowest throughput: what range was meant is unknown.
            ranges = dict.fromkeys(TIMES[2:], cells.names["unknown"])
            cells = cells.with_values(ranges | {column: seconds})
            named.append(Cause(name, printed.known, column, found=printed, expected=seconds))
    return cells, named


def _by_formula(cells: Cells, found: dict[str, Verdict], left: Wrong) -> Iterator[Cause]:
    """Yield the checks of mistakes.yaml, then what is `left` of the wrong figures.

    Where one of these cannot be, that is said with it.
    """
    names, left = dict[str, Any](), dict(left)
    checks = [
        (name, mistake, column, when)
        for name, mistake in MISTAKES.items()
        for key, when in mistake.when.items()
        for column in (PRINTED if key == "any" else [key])
    ]
    for name, mistake, column, when in checks:
        one = found.get(column)
        if one:
            least = np.fmin.reduce([value.low for value in one.values])
            names |= {"figure": one.said, "value": one.values[0], "least": least}
            names |= {"open": one.open, "agrees": one.agrees, "unexplained": left[column]}
            names |= {"noted": one.note == name, "stated": one.note == "stated"}
        place = cells.evaluate(when, **names)
        names["column"] = cells.columns.get(column, UNKNOWN)
        seen, right = (cells.evaluate(x, **names) for x in (mistake.found, mistake.expected))
        if one:
            both = place & left[column]
            yield _left(f"unexplained;{name}", one, both)
            left[column] = left[column] & ~both
            place = place & ~one.wrong
        names[f"is_{name}"] = place
        yield Cause(name, place, column, cells.gpu, seen, right)
    for column, one in found.items():
        near = one.said.near(one.values[0])
        yield _left("nearly", one, left[column] & near)
        yield _left("unexplained", one, left[column] & ~near)


def _left(name: str, one: Verdict, place: np.ndarray) -> Cause:
    return Cause(name, place, one.quantity, found=one.said, expected=one.values[0])


def _fixed_part(cells: Cells) -> Iterator[Cause]:
    """What of an epoch falls neither with N nor with the iterations, where that fits its times."""
    n, steps = cells.gpus, cells.names["steps"].low
    for time, column in zip("TW", TIMES, strict=False):
        own, single = cells.names[time], cells.names[f"{time}1"]
        seconds = (own - single / n).middle
        place = np.isfinite(seconds) & (n > 1)
        if place.sum() > 3 and min(len(set(each[place])) for each in (n, cells.batch)) > 1:
            shares = np.column_stack([1 - 1 / n, steps])[place]
            fit = np.linalg.lstsq(shares, seconds[place], rcond=None)[0]
            fixed, off = fit[0], np.abs(seconds[place] - shares @ fit)
            if fixed > FIXED * single.middle[place].max() and off.max() < TIGHT * fixed:
                yield Cause("fixed_part", place, column, f"{fixed:.2g} s", own, own - fixed)


def _missing(cells: Cells) -> list[tuple[int, int]]:
    """(N, b) of every combination of the strategy's numbers of GPUs and batches without a row."""
    there = set(zip(cells.gpus[: cells.own].tolist(), cells.batch.tolist(), strict=False))
    gpus, batches = (sorted(set(each)) for each in zip(*there, strict=True))
    fitting = ((n, b) for n in gpus for b in batches[: bisect_right(batches, cells.images // n)])
    return [cell for cell in fitting if cell not in there]
