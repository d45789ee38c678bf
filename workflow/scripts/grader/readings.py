"""What a figure may have been computed from: its definition with one or two parts taken wrongly."""

import math
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from grader.cells import PARAMETERS, UNKNOWN, Cells
from grader.definitions import BANDWIDTH, DEFINITIONS, UTILIZATION, Verdict, foreign
from grader.intervals import Interval, common, of, stacked
from grader.mistakes import MISTAKES
from grader.study import BYTES_PER_PARAMETER

SUSPECTS = 40
"""Cells or numbers of GPUs beyond these are not tried as causes: a study has a few dozen."""
LARGE = 1000
"""Of a study with more cells no two slips together are tried, nor one in the times of a cell."""
FITTED = 4.0
"""The cost of a number that is fitted to the figures."""
OF_CELLS = {"T": "its time", "W": "its time", "moving": "its communication time"}
"""Parts that may be of another cell, as the whole may, in words."""
ALIKE = {"own": "sent", "ring": "sent", "W": "T", "W1": "T1"}
"""Parts that may be taken for the same as another."""
EXCHANGED = {"T": "W", "W": "T"}


class Slip(NamedTuple):
    """A mistake of mistakes.yaml in a part or the whole, its rule, and how uncommon it is.

    The cost is the logarithm of how many of its kind are as common.
    """

    name: str
    rule: str
    part: str
    cost: float


class Reading(NamedTuple):
    """What each of the slips `first`, with each of the slips `second`, makes of every cell.

    `cost` is that of the definition which they slip from.
    """

    first: list[Slip]
    second: list[Slip]
    values: Interval
    cost: float


Way = tuple[Slip, str, dict[str, Any]]
"""A slip, its formula and what the letter in it stands for."""
RIGHT = Slip("", "", "", 0.0)


def readings(one: Verdict) -> Iterator[Reading]:
    """Yield all that the wrong figures of a quantity may have been computed from.

    That is each sound definition with all that may stand in the place of one of its parts, or of
    two, or of one and of the whole.
    """
    cells = one.cells
    # One number that is fitted says less than as many figures.
    alone = one.quantity == BANDWIDTH and foreign(cells)
    if alone or (one.quantity == BANDWIDTH and not cells.names["K"].known.any()):
        # Slips that no other number explains are tried with that of the lab's network.
        size = of(float(BYTES_PER_PARAMETER * PARAMETERS["resnet18-cifar"]))
        cells = cells.with_constant("K", size)
    one, by_lab = replace(one, cells=cells), cells is not one.cells
    names = {"figure": one.said, "wrong": one.wrong}
    wholes = [way for key in (one.quantity, "any", "cells") for way in _ways(cells, key)]
    if one.quantity == UTILIZATION:
        wholes += [way for way in _ways(cells, BANDWIDTH) if "value" in way[1]]
    wholes = [way for way in wholes if way[1] != one.quantity]
    pairs = not alone and len(cells.gpus) <= LARGE
    then = [way for way in wholes if way[1].startswith("value")]

    def made(ways: list[Way], value: Interval) -> Interval:
        each = [cells.evaluate(x, **names, **base, **more, value=value) for _, x, more in ways]
        return stacked([value * np.nan, *each])

    def followed(slips: list[Slip], values: Interval) -> Reading:
        """Each value, and what slips of the whole make of it."""
        more = then if pairs else []
        found = made(more, values)
        found.low[..., 0, :], found.high[..., 0, :] = values.low, values.high
        return Reading(slips, [RIGHT, *(slip for slip, *_ in more)], found, cost)

    for number, (formula, base) in enumerate(_bases(one), 1):
        cost = math.log(number)
        value = cells.evaluate(formula, **base)
        # By bytes that nobody states any factor is as good as another.
        used = [way for way in wholes if "fit" not in way[1]]
        names["fit"] = lambda x: _fit(one, x)
        if not by_lab:
            used += [way for way in wholes if "fit" in way[1]]
        yield followed([RIGHT, *(slip for slip, *_ in used)], made(used, value))
        parts = dict[str, tuple[list[Slip], Interval]]()
        for part in dict.fromkeys(re.findall(r"[A-Za-z]\w*", formula)):
            if ways := _of_part(cells, part):
                right = cells.evaluate(part, **base) * np.ones(len(cells.gpus))
                each = [cells.evaluate(x, **base, **more, value=right) for _, x, more in ways]
                taken = stacked([right, *each])
                parts[part] = [RIGHT, *(slip for slip, *_ in ways)], taken
                yield followed(parts[part][0], cells.evaluate(formula, **base | {part: taken}))
        for (a, (first, x)), (b, (second, y)) in combinations(parts.items() if pairs else [], 2):
            both = {a: Interval(x.low[:, None], x.high[:, None]), b: y}
            yield Reading(first, second, cells.evaluate(formula, **base | both), cost)


def _fit(one: Verdict, value: Interval) -> Interval:
    """`value` times what makes most wrong figures of it, if those are three."""
    suspects = one.wrong | one.blank
    values = value * common((one.said / value).where(suspects, UNKNOWN))
    return values if (one.said.meets(values) & suspects).sum() > 2 else UNKNOWN * value


def _bases(one: Verdict) -> Iterator[tuple[str, dict[str, Interval]]]:
    """Yield the formulas by which a figure may be right, and the names of its own in each."""
    if one.quantity == UTILIZATION:
        yield from (("rate", {"rate": value}) for value in one.values)
        yield f"({one.formula}) * share", {}
        return
    for formula in dict.fromkeys([one.formula, *DEFINITIONS[one.quantity].values()]):
        yield formula, {}
        if one.quantity == BANDWIDTH:
            yield formula, {"moving": one.cells.names["rest"]}


def _of_part(cells: Cells, part: str) -> list[Way]:
    """What may stand in the place of a part, W in that of T where its time is without loading."""
    ways = list(_ways(cells, ALIKE.get(part, part)))
    if part in OF_CELLS:
        ways += [
            (slip._replace(rule=f"{slip.rule}, in {OF_CELLS[part]}", part=part), formula, numbers)
            for slip, formula, numbers in _ways(cells, "cells")
        ]
    if not part.startswith("W"):
        return ways
    swap = re.compile(r"\b([TW])(?=0\b|1\b|Nb\b|\b)")
    return [
        (slip, swap.sub(lambda found: EXCHANGED[found[1]], formula), numbers)
        for slip, formula, numbers in ways
    ]


def _ways(cells: Cells, key: str) -> Iterator[Way]:
    """Yield each slip that mistakes.yaml has under a key, with each number that it may be of."""
    names = [name for name, mistake in MISTAKES.items() if key in mistake.formulas]
    for rank, name in enumerate(names, 2):
        for rule, formula in MISTAKES[name].formulas[key]:
            letters = {"M": (cells.gpus, cells.gpus > 1), "B": (cells.batch, cells.gpus == 1)}
            used = [letter for letter in letters if re.search(rf"\b{letter}\b", formula)]
            cost = math.log(rank) + FITTED * ("fit" in formula)
            if not used:
                yield Slip(name, rule, key, cost), formula, {}
            for letter in used:
                numbers, there = letters[letter]
                every = np.unique(numbers[there])[:SUSPECTS].tolist()
                for number in every:
                    slip = Slip(name, str(number), key, cost + math.log(len(every)))
                    yield slip, formula, {letter: number}
