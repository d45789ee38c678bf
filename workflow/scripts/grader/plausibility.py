"""What cannot be, or is easily misread, in the times of a study and in figures that may be right.

A check that is a formula stands in formulas.yaml; another one goes into `CHECKS`.
"""

from bisect import bisect_right
from collections.abc import Iterator

import numpy as np

from grader.causes import FROM_TIMES, Cause
from grader.cells import FORMULAS, Cells
from grader.definitions import Verdict
from grader.intervals import of

COMMUNICATION_FACTOR = 2.0
"""Largest over smallest communication of an iteration that is worth no remark."""
COINCIDENCE = 0.001
"""How many pairs of equal times chance may be expected to give before a pair is no remark."""


def by_formula(cells: Cells, found: dict[str, Verdict]) -> Iterator[Cause]:
    """The checks of formulas.yaml; figures that contradict their times are named already."""
    for name, check in FORMULAS["checks"].items():
        names = {"own_row": np.arange(len(cells.gpus)) < cells.own}
        one = found.get(check["column"])
        if one:
            least = np.fmin.reduce([value.low for value in one.values])
            names |= {"least": least, "unchecked": one.open}
        place = cells.evaluate(check["when"], **names) & ~(one.wrong if one else False)
        values = {key: cells.evaluate(check[key]) for key in ("found", "expected") if key in check}
        yield Cause(name, place, check["column"], **values)


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


CHECKS = [by_formula, identical, communication, gaps]
