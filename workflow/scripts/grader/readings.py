"""What a figure may have been computed from: its definition with one or two parts taken wrongly."""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, product
from typing import Any

import numpy as np

from grader.cells import DEFINITIONS, PARAMETERS, UNKNOWN, Cells, Interval, common, of, stacked
from grader.definitions import BANDWIDTH, MISTAKES, UTILIZATION, WAYS, Substitution, Verdict
from grader.study import BYTES_PER_PARAMETER

CHANCE, SPREAD = -math.log(0.05), 4.0
"""The surprise of luck that names a cause; a wrong figure may be anywhere within a factor of e⁴."""
PAIR, WHOLE = math.log(len(MISTAKES)), 1.6
"""The cost of a second mistake, and the gain where all of a column is met."""
SUSPECTS, LARGE = 40, 1000
"""So many cells are tried as causes; of more no two mistakes together, nor single wrong times."""
OF_CELLS = {"T": "its time", "W": "its time", "moving": "its communication time"}
"""Parts that may be of another cell, as the whole may, in words."""
ALIKE = {"own": "sent", "ring": "sent", "W": "T", "W1": "T1"}
"""Parts that may be taken for the same as another."""
TIME = re.compile(r"\b([TW])(?=1?\b)")
Ways = list[Substitution]
Wrong = dict[str, np.ndarray]
"""Figures of each quantity, as true or false for each cell."""
RIGHT = Substitution("", "", "", 0.0, "value")


@dataclass(frozen=True)
class Cause:
    """A mistake of mistakes.yaml, and the cells of the figures that it explains.

    `rule` stands for `{rule}` in its words, `quantity` is "" for a cause in the times, those in
    which the cells are wrong. `suspects` counts the figures that were unexplained.
    """

    name: str
    cells: np.ndarray
    quantity: str = ""
    rule: str = ""
    found: Interval = UNKNOWN
    expected: Interval = UNKNOWN
    resolved: Wrong = field(default_factory=dict)
    weight: float = 0.0
    times: Sequence[str] = ()
    suspects: int = 0


class Readings:
    """All that wrong figures of a quantity may have been computed from, a row for each reading.

    Each has its `mistakes`, their cost, the `values` it gives, and the surprise at those met.
    """

    def __init__(self, one: Verdict) -> None:
        self.one, self.mistakes = one, [list[Substitution]()]
        costs, rows = [0.0], [one.said * np.nan]
        for cost, first, second, values in _readings(one):
            meets = (one.said.meets(values) & (one.wrong | one.blank)).sum(-1)
            for i, j in np.argwhere(meets).tolist():
                both = [each for each in (first[i], second[j]) if each.name]
                places = {(each.name, each.part) for each in both}
                if 1 <= len(both) <= min(meets[i, j], len(places)):
                    self.mistakes.append(both)
                    costs.append(cost + sum(each.cost for each in both) + PAIR * (len(both) - 1))
                    rows.append(values[i, j])
        self.values = stacked(rows)
        self.costs = np.array(costs)
        # The chance that a figure wrong for another reason meets a value: their relative widths.
        width = (one.said.high - one.said.low) + (self.values.high - self.values.low)
        size = np.minimum(np.abs(one.said.middle), np.abs(self.values.middle))
        luck = np.clip(np.nan_to_num(width / size / SPREAD, nan=1.0), 1e-6, 1.0)
        self.surprise = np.where(one.said.meets(self.values), -np.log(luck), 0.0)

    def best(self, wrong: np.ndarray, blank: np.ndarray) -> list[Cause]:
        """Return the reading of most figures that luck would explain most seldom, if there is one.

        Figures without a definition (`blank`) have to agree on one.
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
        if score.max() <= CHANCE:
            return []
        best = int(score.argmax())
        values, place = self.values[best], meets[best]
        if place.sum() > 1:
            place = place | (suspects & one.said.near(values))
        names, rules = zip(*(each[:2] for each in self.mistakes[best]), strict=True)
        name, rule = (";".join(dict.fromkeys(each)) for each in (names, rules))
        resolved, weight = {one.quantity: place}, float(place.sum())
        return [Cause(name, place, one.quantity, rule, one.said, one.values[0], resolved, weight)]


def _readings(one: Verdict) -> Iterator[tuple[float, Ways, Ways, Interval]]:
    """Yield what each of some substitutions, with each of others, makes of every cell.

    They stand in the place of a part, or of two, or of one and of the whole, of each definition.
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
        # By bytes that nobody states any factor is as good as another.
        suspects = (one.wrong | one.blank) & (not by_lab)
        values = value * common((one.said / value).where(suspects, UNKNOWN))
        return values if (one.said.meets(values) & suspects).sum() > 2 else UNKNOWN * value

    names = {"figure": one.said, "wrong": one.wrong, "fit": fit}
    for number, (formula, base) in enumerate(_bases(one), 1):

        def made(each: Ways, value: Interval, own: Any = names | base) -> Interval:
            return stacked([cells.evaluate(x.formula, **own, value=value) for x in each])

        cost, parts = math.log(number), dict[str, tuple[Ways, Interval]]()
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
            yield cost, first, second, cells.evaluate(formula, **base | {a: x[:, None], b: y})


def _bases(one: Verdict) -> Iterable[tuple[str, dict[str, Interval]]]:
    """Return the formulas by which a figure may be right, and the names of its own in each."""
    if one.quantity == UTILIZATION:
        rates = [("rate", {"rate": value}) for value in one.values]
        return [*rates, (f"({one.formula}) * share", {})]
    formulas = dict.fromkeys([one.formula, *DEFINITIONS[one.quantity].values()])
    chained = [{"moving": one.cells.names["rest"]}] if one.quantity == BANDWIDTH else []
    return product(formulas, [{}, *chained])


def _of_part(cells: Cells, part: str) -> list[Substitution]:
    """What may stand in the place of a part, W in that of T where its time is without loading."""
    found = [*_under(cells, ALIKE.get(part, part))]
    for each in _under(cells, "cells") if part in OF_CELLS else ():
        found.append(each._replace(rule=f"{each.rule}, in {OF_CELLS[part]}", part=part))
    if part.startswith("W"):
        other = {"T": "W", "W": "T"}
        formulas = (TIME.sub(lambda time: other[time[1]], each.formula) for each in found)
        found = [each._replace(formula=own) for each, own in zip(found, formulas, strict=True)]
    return found


def _under(cells: Cells, key: str) -> Iterator[Substitution]:
    """Yield what mistakes.yaml has under a key, with each number that it may be of."""
    every = {"M": cells.gpus[cells.gpus > 1], "B": cells.batch[cells.gpus == 1]}
    numbers = {letter: np.unique(each)[:SUSPECTS].astype(str) for letter, each in every.items()}
    for way in WAYS.get(key, []):
        letter = next((one for one in numbers if re.search(rf"\b{one}\b", way.formula)), "")
        if not letter:
            yield way
        for one in numbers.get(letter, []):
            own = re.sub(rf"\b{letter}\b", one, way.formula)
            dear = way.cost + math.log(len(numbers[letter]))
            yield way._replace(rule=one, cost=dear, formula=own)
