"""What cannot be, or is easily misread, in the times of a study and in figures that may be right.

A check that is a formula stands in mistakes.yaml; the others are here.
"""

from bisect import bisect_right
from collections.abc import Iterator
from typing import Any

import numpy as np

from grader.causes import Cause, Wrong
from grader.cells import Cells
from grader.definitions import RATE, Verdict
from grader.mistakes import MISTAKES
from grader.study import PRINTED, TIMES

FIXED, TIGHT = 0.03, 0.25
"""A part of T(1,b) that is worth a remark, and how much of it the fit may be off."""
COINCIDENCE = 0.001
"""How many pairs of equal times chance may be expected to give before a pair is no remark."""


def as_seconds(cells: Cells) -> tuple[Cells, list[Cause]]:
    """The cells with seconds where they have a throughput in the place of a time, and where."""
    name, named = "throughput_as_time", []
    for column, when in MISTAKES[name].when.items():
        printed = cells.columns
        if cells.evaluate(when).any():
            names = [TIMES[0], TIMES[2], TIMES[3]] if column == TIMES[0] else [column]
            names_of = zip(names, [names[0], *reversed(names[1:])], strict=True)
            seconds = {time: cells.names["images"] / printed[other] for time, other in names_of}
            cells = cells.with_columns(seconds)
            found = {"found": printed[column], "expected": seconds[column]}
            named.append(Cause(name, printed[column].known, column, **found))
    return cells, named


def by_formula(cells: Cells, found: dict[str, Verdict], left: Wrong) -> Iterator[Cause]:
    """Yield the checks of mistakes.yaml, then what is `left` of the wrong figures.

    Where one of these cannot be, that is said with it; other wrong figures are named already.
    """
    names: dict[str, Any] = {}
    left = dict(left)
    for name, mistake in MISTAKES.items():
        for key, when in mistake.when.items():
            for column in PRINTED if key == "any" else [key]:
                rule, one = cells.gpu, found.get(column)
                if one:
                    least = np.fmin.reduce([value.low for value in one.values])
                    names |= {"figure": one.said, "value": one.values[0], "least": least}
                    names |= {"open": one.open, "agrees": one.agrees, "unexplained": left[column]}
                    names |= {"noted": one.note == name, "stated": one.note == "stated"}
                    rule = one.rule
                place = cells.evaluate(when, **names)
                seen, right = (
                    cells.evaluate(formula, **names) if formula else None
                    for formula in (mistake.found, mistake.expected)
                )
                if one:
                    both = place & left[column]
                    yield _left(f"unexplained;{name}", one, both)
                    left[column] = left[column] & ~both
                    place = place & ~one.wrong
                names[f"is_{name}"] = place
                yield Cause(name, place, column, rule, seen or cells.columns.get(column), right)
    for column, one in found.items():
        near = one.said.near(one.values[0])
        if column == RATE:
            yield _left("measured_apart", one, left[column])
            continue
        yield _left("nearly", one, left[column] & near)
        yield _left("unexplained", one, left[column] & ~near)


def _left(name: str, one: Verdict, place: np.ndarray) -> Cause:
    return Cause(name, place, one.quantity, found=one.said, expected=one.values[0])


def fixed_part(cells: Cells) -> Iterator[Cause]:
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


def identical(cells: Cells) -> Iterator[Cause]:
    """Two cells hardly ever take the same time to the last digit, with loading and without."""
    own, luck = np.arange(len(cells.gpus)) < cells.own, 1.0
    again = own.copy()
    for times in (cells.columns[name] for name in TIMES[:2]):
        known = times.known & own
        if known.sum() > 1:
            values, rows = times.middle[known], np.flatnonzero(known)
            places, count = np.unique(values, return_inverse=True, return_counts=True)[1:]
            again[rows[count[places] == 1]] = False
            width = np.median((times.high - times.low)[known]) / (np.ptp(values) or 1.0)
            luck *= min(1.0, known.sum() ** 2 / 2 * width)
    again &= cells.names["T"].known
    if luck < COINCIDENCE:
        yield Cause("identical_times", again, TIMES[0], found=cells.names["T"])


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
