"""What cannot be, or is easily misread, in the times of a study and in figures that may be right.

A check that is a formula stands in formulas.yaml; another one goes into `CHECKS`.
"""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from grader.causes import FROM_TIMES, Cause
from grader.cells import FORMULAS, Cells
from grader.definitions import STATED_PEAK, Verdict
from grader.intervals import of
from grader.study import TIMES

COMMUNICATION_FACTOR = 2.0
"""Largest over smallest communication of an iteration that is worth no remark."""
FIXED, TIGHT = 0.03, 0.25
"""A part of T(1,b) that is worth a remark, and how much of it the fit may be off."""
COINCIDENCE = 0.001
"""How many pairs of equal times chance may be expected to give before a pair is no remark."""


def by_formula(cells: Cells, found: dict[str, Verdict]) -> Iterator[Cause]:
    """The checks of formulas.yaml; figures that contradict their times are named already."""
    names: dict[str, Any] = {"own_row": np.arange(len(cells.gpus)) < cells.own}
    for name, check in FORMULAS["checks"].items():
        one = found.get(check["column"])
        if one:
            names["least"] = np.fmin.reduce([value.low for value in one.values])
            names |= {"unchecked": one.open, "agrees": one.agrees, "constant": one.constant}
            names["stated"] = one.formula == STATED_PEAK
        place = cells.evaluate(check["when"], **names) & ~(one.wrong if one else False)
        names[f"is_{name}"] = place
        values = {key: cells.evaluate(check[key]) for key in ("found", "expected") if key in check}
        yield Cause(name, place, check["column"], cells.gpu, **values)


def as_seconds(cells: Cells) -> tuple[Cells, list[Cause]]:
    """The cells with seconds where they have a throughput in the place of a time, and where."""
    named = []
    for column, when in FORMULAS["throughput"].items():
        printed = cells.columns
        if cells.evaluate(when).any():
            names = [TIMES[0], TIMES[2], TIMES[3]] if column == TIMES[0] else [column]
            names_of = zip(names, [names[0], *reversed(names[1:])], strict=True)
            seconds = {name: cells.names["images"] / printed[other] for name, other in names_of}
            cells = replace(cells, columns=printed | seconds)
            found = {"found": printed[column], "expected": seconds[column]}
            named.append(Cause("throughput_as_time", printed[column].known, column, **found))
    return cells, named


def fixed_part(cells: Cells, _: dict[str, Verdict]) -> Iterator[Cause]:
    """What of an epoch falls neither with N nor with the iterations, where that fits its times."""
    n, steps = cells.gpus, cells.names["steps"].low
    for column, rest in (("T", "T - T1 / N"), ("W", "W - W1 / N")):
        seconds, single = cells.evaluate(rest).middle, cells.names[f"{column}1"].middle
        place = np.isfinite(seconds) & (n > 1)
        if place.sum() > 3 and min(len(set(each[place])) for each in (n, cells.batch)) > 1:
            shares = np.column_stack([1 - 1 / n, steps])[place]
            fit = np.linalg.lstsq(shares, seconds[place], rcond=None)[0]
            fixed, off = fit[0], np.abs(seconds[place] - shares @ fit)
            if fixed > FIXED * single[place].max() and off.max() < TIGHT * fixed:
                found, rule = cells.names[column], f"{fixed:.2g} s"
                name = dict(zip("TW", TIMES, strict=False))[column]
                yield Cause("fixed_part", place, name, rule, found, found - fixed)


def identical(cells: Cells, _: dict[str, Verdict]) -> Iterator[Cause]:
    """Two cells hardly ever take the same time to the last digit, with loading and without."""
    columns, own = ("T", "W"), np.arange(len(cells.gpus)) < cells.own
    same, luck = np.zeros((3, len(own)), dtype=bool), [1.0, 1.0, 1.0]
    for index, column in enumerate(columns):
        times = cells.names[column]
        known = times.known & own
        if known.sum() > 1:
            values = times.middle[known]
            again, count = np.unique(values, return_inverse=True, return_counts=True)[1:]
            same[index, known] = count[again] > 1
            width = np.median((times.high - times.low)[known]) / (np.ptp(values) or 1.0)
            luck[index] = min(1.0, known.sum() ** 2 / 2 * width)
    same[2], luck[2] = same[0] & same[1], luck[0] * luck[1]
    same[:2] &= ~same[2]
    for place, share, column in zip(same, luck, (*columns, "T"), strict=True):
        name = "identical_times" if share < COINCIDENCE else "equal_times"
        yield Cause(name, place, "epoch_seconds", found=cells.names[column])


def communication(cells: Cells, _: dict[str, Verdict]) -> Iterator[Cause]:
    """Communication of one iteration moves the same bytes at every b, so it takes the same time."""
    step = cells.evaluate("rest / steps")
    varies, expected = np.zeros(len(cells.gpus), dtype=bool), np.full(len(cells.gpus), np.nan)
    for place in cells.groups:
        same = place[(cells.gpus[place] > 1) & (step.low[place] > 0)]
        if len(same) > 1 and step.low[same].max() > COMMUNICATION_FACTOR * step.high[same].min():
            varies[same] = step.low[same] == step.low[same].max()
            expected[same] = step.middle[same].min()
    yield Cause("communication_varies", varies, "epoch_seconds", "", step, of(expected))


def gaps(cells: Cells, found: dict[str, Verdict]) -> Iterator[Cause]:
    """Every row of a time has its figures, and every figure what it follows from."""
    several, own = cells.gpus > 1, np.arange(len(cells.gpus)) < cells.own
    time, single = cells.names["T"].known, cells.names["T1"].known
    for name, one in found.items():
        known = one.said.known
        yield Cause("blank_figure", time & ~known & several & own & known[several].any(), name)
        yield Cause("no_time", known & ~time, name, found=one.said)
        lacks = one.open & time & ~single & (name in FROM_TIMES)
        yield Cause("no_single_time", lacks, name, found=one.said)
        unchecked = one.open & time & ~lacks
        yield Cause(one.unchecked or "no_figure", unchecked, name, found=one.said)
        yield Cause(one.remark or "no_figure", one.agrees & (one.remark != ""), name, one.formula)


def missing(cells: Cells) -> list[tuple[int, int]]:
    """(N, b) of every combination of the strategy's numbers of GPUs and batches without a row."""
    gpus, batch = (cells.gpus[: cells.own].tolist(), cells.batch[: cells.own].tolist())
    own, batches = set(zip(gpus, batch, strict=True)), sorted(set(batch))
    return [
        (n, b)
        for n in sorted(set(gpus))
        for b in batches[: bisect_right(batches, cells.images // n)]
        if (n, b) not in own
    ]


CHECKS = [by_formula, identical, communication, fixed_part, gaps]
