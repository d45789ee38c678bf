"""What a figure may have been computed from: its definition with one or two parts taken wrongly."""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import NamedTuple

import numpy as np

from grader.cells import PARAMETERS, UNKNOWN, Cells
from grader.definitions import BANDWIDTH, DEFINITIONS, MISTAKES, UTILIZATION, Verdict
from grader.intervals import Interval, common, of, stacked
from grader.study import BYTES_PER_PARAMETER

CHANCE = -math.log(0.05)
"""A cause is named that explains figures which luck would explain more seldom than this."""
SPREAD = 4.0
"""A figure that is wrong for no known reason may be anywhere within a factor of e⁴."""
PAIR = math.log(len(MISTAKES))
"""The cost of a second mistake."""
WHOLE = 1.6
"""How much likelier a mistake is that gives the right figures of its column as well: five times."""
SUSPECTS = 40
"""Cells or numbers of GPUs beyond these are not tried as causes: a study has a few dozen."""
LARGE = 1000
"""Of a study with more cells no two mistakes together are tried, nor one in the times of a cell."""
FITTED = 4.0
"""The cost of a number that is fitted to the figures."""
OF_CELLS = {"T": "its time", "W": "its time", "moving": "its communication time"}
"""Parts that may be of another cell, as the whole may, in words."""
ALIKE = {"own": "sent", "ring": "sent", "W": "T", "W1": "T1"}
"""Parts that may be taken for the same as another."""
EXCHANGED = {"T": "W", "W": "T"}
TIME = re.compile(r"\b([TW])(?=1?\b)")
Named = dict[str, Interval]
Wrong = dict[str, np.ndarray]
"""Figures of each quantity, as true or false for each cell."""


class Substitution(NamedTuple):
    """What stands in the place of a part, or of the whole, by a mistake of mistakes.yaml.

    `cost` is the logarithm of how many of its kind are as common.
    """

    name: str
    rule: str
    part: str
    cost: float
    formula: str


RIGHT = Substitution("", "", "", 0.0, "value")


@dataclass(frozen=True)
class Cause:
    """A mistake of mistakes.yaml, and the cells of the figures that it explains.

    `rule` stands for `{rule}` in its words, `quantity` is "" for a cause in the times. `found` and
    `expected` have an interval for each cell, `suspects` counts the figures that were unexplained.
    `times` are columns in which these cells are wrong.
    """

    name: str
    cells: np.ndarray
    quantity: str = ""
    rule: str = ""
    found: Interval | None = None
    expected: Interval | None = None
    resolved: Wrong = field(default_factory=dict)
    weight: float = 0.0
    times: Sequence[str] = ()
    suspects: int = 0


@dataclass(frozen=True)
class Readings:
    """All that wrong figures of a quantity may have been computed from, a row for each reading.

    Its `mistakes`, their `costs`, the `values` that it gives, the `surprise` at each that is met.
    """

    one: Verdict
    mistakes: list[list[Substitution]]
    costs: np.ndarray
    values: Interval
    surprise: np.ndarray

    @classmethod
    def of(cls, one: Verdict) -> "Readings":
        """The readings of a quantity that meet a figure which is wrong or has no definition."""
        mistakes, costs, lows, highs = [], [], [], []
        for cost, first, second, values in _readings(one):
            meets = (one.said.meets(values) & (one.wrong | one.blank)).sum(-1)
            for i, j in np.argwhere(meets).tolist():
                both = [each for each in (first[i], second[j]) if each.name]
                places = {(each.name, each.part) for each in both}
                if 1 <= len(both) <= min(meets[i, j], len(places)):
                    mistakes.append(both)
                    costs.append(cost + sum(each.cost for each in both) + PAIR * (len(both) - 1))
                    lows.append(values.low[i, j])
                    highs.append(values.high[i, j])
        size = -1, len(one.cells.gpus)
        values = Interval(np.array(lows).reshape(size), np.array(highs).reshape(size))
        surprise = np.where(one.said.meets(values), -np.log(_luck(one.said, values)), 0.0)
        # The same number where the same is right is one witness.
        alike = np.stack([one.said.middle, one.values[0].middle])
        _, which, counts = np.unique(alike, axis=1, return_inverse=True, return_counts=True)
        return cls(one, mistakes, np.array(costs), values, surprise / counts[which.reshape(-1)])

    def best(self, wrong: np.ndarray, blank: np.ndarray) -> list[Cause]:
        """Return the reading of most figures that luck would explain most seldom, if there is one.

        Figures without a definition (`blank`) have to agree on one.
        """
        one, cells, suspects = self.one, self.one.cells, wrong | blank
        meets, total = suspects & (self.surprise > 0), int(suspects.sum())
        count = meets.sum(-1)
        choices = np.array([math.log(math.comb(total, some)) for some in range(total + 1)])
        score = (self.surprise * meets).sum(-1) - self.costs - choices[count]
        # One formula for a whole column is likelier than one for the figures that it makes wrong.
        figures = one.said.known & (cells.gpus > 1)
        score += WHOLE * ((self.surprise > 0) | ~figures).all(-1)
        # One figure that is nearly right is as likely just that.
        few = (meets & ~(one.said.near(one.values[0]) & (count < 2)[:, None])).sum(-1)
        score[few < (max(2, total // 2 + 1) if blank.any() else 1)] = -np.inf
        if score.max(initial=CHANCE) <= CHANCE:
            return []
        best = int(score.argmax())
        values, place = Interval(self.values.low[best], self.values.high[best]), meets[best]
        if place.sum() > 1:
            place = place | (suspects & one.said.near(values))
        names, rules = zip(*(each[:2] for each in self.mistakes[best]), strict=True)
        name, rule = (";".join(dict.fromkeys(each)) for each in (names, rules))
        # What concerns one of several batch sizes may as well be its T(1,b).
        alone = len(set(cells.batch[place])) == 1 < len(set(cells.batch[figures]))
        alone &= not (one.said.meets(values) | ~figures).all()
        weight, right = float(place.sum()) - 0.75 * alone, one.values[0]
        resolved = {one.quantity: place}
        return [Cause(name, place, one.quantity, rule, one.said, right, resolved, weight)]


def _luck(said: Interval, value: Interval) -> np.ndarray:
    """The chance that a figure wrong for another reason meets `value`: their relative widths."""
    width = (said.high - said.low) + (value.high - value.low)
    size = np.minimum(np.abs(said.middle), np.abs(value.middle))
    share = np.where(np.isfinite(width) & (size > 0), width / size / SPREAD, 1.0)
    return np.clip(np.where(np.isnan(share), 1.0, share), 1e-6, 1.0)


def _readings(
    one: Verdict,
) -> Iterator[tuple[float, list[Substitution], list[Substitution], Interval]]:
    """Yield what each of some substitutions, with each of others, makes of every cell.

    That is each sound definition, at its cost, with all that may stand in the place of one of its
    parts, or of two, or of one and of the whole.
    """
    cells = one.cells
    by_lab = one.quantity == BANDWIDTH and not cells.names["K"].known.any()
    if by_lab:
        # Mistakes that no other number explains are tried with that of the lab's network.
        size = of(float(BYTES_PER_PARAMETER * PARAMETERS["resnet18-cifar"]))
        one = replace(one, cells=(cells := cells.with_values({"K": size})))
    wholes = [each for key in (one.quantity, "any", "cells") for each in _under(cells, key)]
    if one.quantity == UTILIZATION:
        wholes += [each for each in _under(cells, BANDWIDTH) if "value" in each.formula]
    wholes = [RIGHT, *(each for each in wholes if each.formula != one.quantity)]
    pairs = len(cells.gpus) <= LARGE
    then = [each for each in wholes if each.formula.startswith("value")] if pairs else [RIGHT]

    def fit(value: Interval) -> Interval:
        """`value` times what makes most wrong figures of it, if those are three.

        By bytes that nobody states any factor is as good as another.
        """
        suspects = (one.wrong | one.blank) & (not by_lab)
        values = value * common((one.said / value).where(suspects, UNKNOWN))
        return values if (one.said.meets(values) & suspects).sum() > 2 else UNKNOWN * value

    names = {"figure": one.said, "wrong": one.wrong, "fit": fit}
    for number, (formula, base) in enumerate(_bases(one), 1):

        def made(each: list[Substitution], value: Interval, base: Named = base) -> Interval:
            given = names | base | {"value": value}
            return stacked([cells.evaluate(x.formula, **given) for x in each])

        cost, parts = math.log(number), dict[str, tuple[list[Substitution], Interval]]()
        value = cells.evaluate(formula, **base) * np.ones(len(cells.gpus))
        yield cost, wholes, then, made(then, made(wholes, value))
        for part in dict.fromkeys(re.findall(r"[A-Za-z]\w*", formula)):
            if others := _of_part(cells, part):
                right = cells.evaluate(part, **base) * np.ones(len(cells.gpus))
                taken = made([RIGHT, *others], right)
                parts[part] = [RIGHT, *others], taken
                changed = cells.evaluate(formula, **base | {part: taken})
                yield cost, parts[part][0], then, made(then, changed)
        for (a, (first, x)), (b, (second, y)) in combinations(parts.items() if pairs else [], 2):
            both = {a: Interval(x.low[:, None], x.high[:, None]), b: y}
            yield cost, first, second, cells.evaluate(formula, **base | both)


def _bases(one: Verdict) -> Iterator[tuple[str, Named]]:
    """Yield the formulas by which a figure may be right, and the names of its own in each."""
    if one.quantity == UTILIZATION:
        yield from (("rate", {"rate": value}) for value in one.values)
        yield f"({one.formula}) * share", {}
        return
    for formula in dict.fromkeys([one.formula, *DEFINITIONS[one.quantity].values()]):
        yield formula, {}
        if one.quantity == BANDWIDTH:
            yield formula, {"moving": one.cells.names["rest"]}


def _of_part(cells: Cells, part: str) -> list[Substitution]:
    """What may stand in the place of a part, W in that of T where its time is without loading."""
    found = list(_under(cells, ALIKE.get(part, part)))
    if part in OF_CELLS:
        found += [
            each._replace(rule=f"{each.rule}, in {OF_CELLS[part]}", part=part)
            for each in _under(cells, "cells")
        ]
    if not part.startswith("W"):
        return found
    return [
        each._replace(formula=TIME.sub(lambda time: EXCHANGED[time[1]], each.formula))
        for each in found
    ]


def _under(cells: Cells, key: str) -> Iterator[Substitution]:
    """Yield what mistakes.yaml has under a key, with each number that it may be of."""
    names = [name for name, mistake in MISTAKES.items() if key in mistake.formulas]
    every = {"M": cells.gpus[cells.gpus > 1], "B": cells.batch[cells.gpus == 1]}
    numbers = {letter: np.unique(each)[:SUSPECTS].astype(str) for letter, each in every.items()}
    for rank, name in enumerate(names, 2):
        for rule, formula in MISTAKES[name].formulas[key]:
            cost = math.log(rank) + FITTED * ("fit" in formula)
            letter = next((one for one in numbers if re.search(rf"\b{one}\b", formula)), "")
            if not letter:
                yield Substitution(name, rule, key, cost, formula)
            for one in numbers.get(letter, []):
                dear = cost + math.log(len(numbers[letter]))
                own = re.sub(rf"\b{letter}\b", one, formula)
                yield Substitution(name, one, key, dear, own)
