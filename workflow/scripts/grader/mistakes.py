"""The mistakes of mistakes.yaml, and what they make of the figures of a study."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from grader.cells import PARAMETERS, UNKNOWN, Cells
from grader.definitions import BANDWIDTH, DEFINITIONS, UTILIZATION, Verdict, foreign
from grader.intervals import Interval, common, of
from grader.study import BYTES_PER_PARAMETER

SEVERITIES = ["error", "warning", "info"]
PREFIXES = ["thousand_times", "thousandth"]
"""Mistakes of a unit, which come with another one."""
SUSPECTS = 40
"""Cells or numbers of GPUs beyond these are not tried as causes: a study has a few dozen."""


@dataclass(frozen=True)
class Mistake:
    """How grave it is, what happened, what to do about it, and the formulas that tell it.

    `formulas` has (rule, formula) for each way to make a figure of a quantity; `when` the columns
    in which a formula sees it.
    """

    severity: str
    sentence: str
    advice: str
    formulas: dict[str, list[tuple[str, str]]]
    when: dict[str, str] = field(default_factory=dict)
    found: str = ""
    expected: str = ""

    @classmethod
    def of(cls, entry: dict[str, Any]) -> "Mistake":
        """The mistake of an entry of mistakes.yaml."""
        severity = next(name for name in SEVERITIES if name in entry)
        sentence, _, advice = entry.pop(severity).partition(". ")
        others = {name: entry.pop(name) for name in ("when", "found", "expected") if name in entry}
        formulas = {
            key: [
                (str(rule or formula), formula)
                for rule, each in (ways if isinstance(ways, dict) else {"": ways}).items()
                for formula in ([each] if isinstance(each, str) else each)
            ]
            for key, ways in entry.items()
        }
        return cls(severity, sentence, advice, formulas, **others)


Way = tuple[str, str, str]
"""A mistake's name, its rule and one of its formulas."""
MISTAKES = {
    name: Mistake.of(entry)
    for name, entry in yaml.safe_load(
        Path(__file__).with_name("mistakes.yaml").read_text(encoding="utf-8")
    ).items()
}


def slips(one: Verdict) -> Iterator[tuple[str, Interval, str]]:
    """Yield each mistake's name, what it makes of a quantity's figures, and its rule."""
    cells, keys = one.cells, [one.quantity, "any"]
    # One number that is fitted says less than as many figures.
    alone = one.quantity == BANDWIDTH and foreign(cells)
    if alone or (one.quantity == BANDWIDTH and not cells.names["K"].known.any()):
        # Slips that no other number explains are tried with that of the lab's network.
        cells = cells.with_constant(
            "K", of(float(BYTES_PER_PARAMETER * PARAMETERS["resnet18-cifar"]))
        )
    if one.quantity == UTILIZATION:
        keys.append(BANDWIDTH)
    choices = [x for x in DEFINITIONS.get(one.quantity, {}).values() if x != one.formula]
    bases = [{"value": value} for value in replace(one, cells=cells).values]
    if len(bases) > 1:
        bases[-1]["moving"] = cells.names["rest"]
    bases += [{"value": cells.evaluate(formula)} for formula in choices]
    ways = [
        (name, rule, formula)
        for name, mistake in MISTAKES.items()
        for key in keys
        for rule, formula in mistake.formulas.get(key, [])
        if formula not in (one.quantity, one.formula)
        # Of a bandwidth's formulas only factors make a utilization.
        and ("value" in formula or key in keys[:2])
        # By bytes that nobody states any factor is as good as another.
        and (formula != "fit(value)" or cells is one.cells)
    ]

    yield from _made(one, cells, bases, [way for way in ways if "fit" not in _names(way[2])])
    if not alone:
        for name, factor, rule in _pairs(cells, one.quantity, ways):
            yield from ((name, base["value"] * factor, rule) for base in bases)
    # What has a number of its own is the last resort.
    yield from _made(one, cells, bases, [way for way in ways if "fit" in _names(way[2])])


def _made(
    one: Verdict, cells: Cells, bases: list[dict[str, Interval]], ways: list[Way]
) -> Iterator[tuple[str, Interval, str]]:
    """Yield what formulas make of each of the values that a figure may be derived from."""

    def fit(value: Interval) -> Interval:
        """`value` times what makes most wrong figures of it, if those are three."""
        suspects = one.wrong | one.blank
        values = value * common((one.said / value).where(suspects, UNKNOWN))
        return values if (one.said.meets(values) & suspects).sum() > 2 else UNKNOWN

    for name, rule, formula in ways:
        used = [base for base in bases[1:] if base.keys() & _names(formula)]
        for base in [bases[0], *used]:
            names = {"figure": one.said, "wrong": one.wrong, "fit": fit} | base
            numbers = _numbers(cells, formula, rule)
            each = [(cells.evaluate(formula, **names, **number), x) for x, number in numbers]
            for values, words in [*each, *_of_several(one, each)]:
                yield name, values, words


def _pairs(cells: Cells, quantity: str, ways: list[Way]) -> Iterator[tuple[str, Interval, str]]:
    """Yield what two mistakes together multiply the figures of a quantity by."""
    factors = [
        (name, rule, factor)
        for name, rule, formula in ways
        if name in PREFIXES or quantity in MISTAKES[name].formulas
        if (factor := _factor(cells, formula))
    ]
    for (x, rule, first), (y, other, second) in combinations(factors, 2):
        if x != y:
            yield f"{x};{y}", first * second, f"{rule};{other}"


def _of_several(one: Verdict, each: list[tuple[Interval, str]]) -> Iterator[tuple[Interval, str]]:
    """What three wrong figures are by one number or another in the place of `M` or `B`."""
    suspects, found, used = one.wrong | one.blank, one.said * np.nan, list[str]()
    for values, words in each:
        meets = suspects & one.said.meets(values) & ~found.known
        found = values.where(meets, found)
        used += [words] * bool(meets.any())
    if len(used) > 1 and found.known.sum() > 2:
        yield found, " or ".join(used)


def _factor(cells: Cells, formula: str) -> Interval | None:
    """What a formula multiplies `value` by, in each cell; None if it does not only do that."""
    if not formula.startswith("value") or {"M", "B"} & _names(formula):
        return None
    one = cells.names["one"]
    single, double = (cells.evaluate(formula, value=each) for each in (one, one * 2))
    return single if (single * 2).meets(double)[single.known].all() else None


def _numbers(cells: Cells, formula: str, rule: str) -> list[tuple[str, dict[str, int]]]:
    """What `M` or `B` in a formula may be, in words and as a name; without them the rule alone."""
    found: dict[str, np.ndarray] = {
        "M": cells.gpus[cells.gpus > 1],
        "B": cells.batch[cells.gpus == 1],
    }
    letters = found.keys() & _names(formula)
    if not letters:
        return [(rule, {})]
    return [
        (str(number), {letter: number})
        for letter, numbers in found.items()
        if letter in letters
        for number in np.unique(numbers)[:SUSPECTS].tolist()
    ]


@cache
def _names(formula: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", formula))
