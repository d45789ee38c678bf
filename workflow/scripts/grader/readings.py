"""What a figure may have been computed from: its definition with one or two parts taken wrongly."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from grader.cells import PARAMETERS, UNKNOWN, Cells
from grader.definitions import BANDWIDTH, DEFINITIONS, UTILIZATION, Verdict, foreign
from grader.intervals import Interval, common, of, stacked
from grader.mistakes import MISTAKES
from grader.study import BYTES_PER_PARAMETER

CHANCE = -math.log(0.05)
"""A cause is named that explains figures which luck would explain more seldom than this."""
SPREAD = 4.0
"""A figure that is wrong for no known reason may be anywhere within a factor of e⁴."""
AGAIN, PAIR = 0.5, math.log(len(MISTAKES))
"""The cost of the same mistake in a second part, and of another one with it."""
WHOLE = 1.6
"""How much likelier a slip is that gives the right figures of its column as well: five times."""
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


Way = tuple[Slip, str, dict[str, Any]]
"""A mistake, the formula that it leads to, and the values of the names in that formula."""
RIGHT: Way = Slip("", "", "", 0.0), "value", {}


@dataclass(frozen=True)
class Readings:
    """All that wrong figures of a quantity may have been computed from, a row for each reading.

    Its `slips`, their `costs`, the `values` that it gives and the `surprise` at each that is met.
    """

    one: Verdict
    slips: list[list[Slip]]
    costs: np.ndarray
    values: Interval
    surprise: np.ndarray

    @classmethod
    def of(cls, one: Verdict) -> "Readings":
        """The readings of a quantity that meet a figure which is wrong or has no definition."""
        slips, costs, lows, highs = [], [], [], []
        for cost, first, second, values in _readings(one):
            meets = (one.said.meets(values) & (one.wrong | one.blank)).sum(-1)
            for i, j in np.argwhere(meets).tolist():
                both = [slip for slip in (first[i][0], second[j][0]) if slip.name]
                again = len({slip.name for slip in both}) < len(both)
                if 1 <= len(both) <= min(meets[i, j], len({slip[::2] for slip in both})):
                    slips.append(both)
                    costs.append(cost + sum(slip.cost for slip in both[: 1 if again else 2]))
                    costs[-1] += AGAIN if again else PAIR * (len(both) - 1)
                    lows.append(values.low[i, j])
                    highs.append(values.high[i, j])
        size = -1, len(one.cells.gpus)
        values = Interval(np.array(lows).reshape(size), np.array(highs).reshape(size))
        surprise = np.where(one.said.meets(values), -np.log(_luck(one.said, values)), 0.0)
        # The same number where the same is right is one witness.
        alike = np.stack([one.said.middle, one.values[0].middle])
        _, which, counts = np.unique(alike, axis=1, return_inverse=True, return_counts=True)
        return cls(one, slips, np.array(costs), values, surprise / counts[which.reshape(-1)])

    def best(
        self, wrong: np.ndarray, blank: np.ndarray
    ) -> tuple[list[Slip], Interval, np.ndarray] | None:
        """Return the slips that luck would explain most seldom, their values and figures.

        Figures without a definition (`blank`) have to agree on one. None if luck is as good.
        """
        one, suspects = self.one, wrong | blank
        meets, total = suspects & (self.surprise > 0), int(suspects.sum())
        count = meets.sum(-1)
        choices = np.array([math.log(math.comb(total, some)) for some in range(total + 1)])
        score = (self.surprise * meets).sum(-1) - self.costs - choices[count]
        # One formula for a whole column is likelier than one for the figures that it makes wrong.
        figures = one.said.known & (one.cells.gpus > 1)
        score += WHOLE * ((self.surprise > 0) | ~figures).all(-1)
        # One figure that is nearly right is as likely just that.
        few = (meets & ~(one.said.near(one.values[0]) & (count < 2)[:, None])).sum(-1)
        score[few < (max(2, total // 2 + 1) if blank.any() else 1)] = -np.inf
        if score.max(initial=CHANCE) <= CHANCE:
            return None
        best = int(score.argmax())
        values, explained = Interval(self.values.low[best], self.values.high[best]), meets[best]
        if explained.sum() > 1:
            explained = explained | (suspects & one.said.near(values))
        return self.slips[best], values, explained


def _luck(said: Interval, value: Interval) -> np.ndarray:
    """The chance that a figure wrong for another reason meets `value`: their relative widths."""
    width = (said.high - said.low) + (value.high - value.low)
    size = np.minimum(np.abs(said.middle), np.abs(value.middle))
    share = np.where(np.isfinite(width) & (size > 0), width / size / SPREAD, 1.0)
    return np.clip(np.where(np.isnan(share), 1.0, share), 1e-6, 1.0)


def _readings(one: Verdict) -> Iterator[tuple[float, list[Way], list[Way], Interval]]:
    """Yield what each of some ways, with each of others, makes of every cell.

    That is each sound definition, at its cost, with all that may stand in the place of one of its
    parts, or of two, or of one and of the whole.
    """
    cells = one.cells
    # One number that is fitted says less than as many figures.
    alone = one.quantity == BANDWIDTH and foreign(cells)
    by_lab = alone or (one.quantity == BANDWIDTH and not cells.names["K"].known.any())
    if by_lab:
        # Slips that no other number explains are tried with that of the lab's network.
        size = of(float(BYTES_PER_PARAMETER * PARAMETERS["resnet18-cifar"]))
        one = replace(one, cells=(cells := cells.with_constant("K", size)))
    wholes = [way for key in (one.quantity, "any", "cells") for way in _ways(cells, key)]
    if one.quantity == UTILIZATION:
        wholes += [way for way in _ways(cells, BANDWIDTH) if "value" in way[1]]
    wholes = [RIGHT, *(way for way in wholes if way[1] != one.quantity)]
    pairs = not alone and len(cells.gpus) <= LARGE
    then = [way for way in wholes if way[1].startswith("value")] if pairs else [RIGHT]

    def fit(value: Interval) -> Interval:
        """`value` times what makes most wrong figures of it, if those are three.

        By bytes that nobody states any factor is as good as another.
        """
        suspects = (one.wrong | one.blank) & (not by_lab)
        values = value * common((one.said / value).where(suspects, UNKNOWN))
        return values if (one.said.meets(values) & suspects).sum() > 2 else UNKNOWN * value

    names = {"figure": one.said, "wrong": one.wrong, "fit": fit}
    for number, (formula, base) in enumerate(_bases(one), 1):

        def made(ways: list[Way], value: Interval, own: dict[str, Interval] = base) -> Interval:
            given = names | own | {"value": value}
            return stacked([cells.evaluate(x, **given, **letters) for _, x, letters in ways])

        cost, parts = math.log(number), dict[str, tuple[list[Way], Interval]]()
        value = cells.evaluate(formula, **base) * np.ones(len(cells.gpus))
        yield cost, wholes, then, made(then, made(wholes, value))
        for part in dict.fromkeys(re.findall(r"[A-Za-z]\w*", formula)):
            if ways := _of_part(cells, part):
                right = cells.evaluate(part, **base) * np.ones(len(cells.gpus))
                ways, taken = parts[part] = [RIGHT, *ways], made([RIGHT, *ways], right)
                changed = cells.evaluate(formula, **base | {part: taken})
                yield cost, ways, then, made(then, changed)
        for (a, (first, x)), (b, (second, y)) in combinations(parts.items() if pairs else [], 2):
            both = {a: Interval(x.low[:, None], x.high[:, None]), b: y}
            yield cost, first, second, cells.evaluate(formula, **base | both)


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
