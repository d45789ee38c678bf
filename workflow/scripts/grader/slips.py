"""Which slip in its definition explains a figure: slips.yaml, tried on each accepted formula."""

import math
import re
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import yaml

from grader.formulas import FORMULAS, Cells
from grader.intervals import UNKNOWN, Interval, common, of
from grader.verdicts import Verdict

SEVERITIES = ["error", "warning", "info"]
CHANCE, SPREAD = -math.log(0.05), 4.0
"""The evidence that names a slip; a wrong figure may be anywhere within a factor of e⁴."""
PAIR, WHOLE, LARGE, TRIED = math.log(60), 1.6, 500, 40
"""The cost of a second slip, the gain of a whole column; most cells for pairs, most rows tried."""
LAB = of(4.0 * FORMULAS["parameters"]["resnet18-cifar"])
ALIKE = {"ring": "sent", "W": "T", "W1": "T1"}
TIME = re.compile(r"\b([TW])(?=1?\b)")
Way = tuple[str, str, str]
"""A slip's name, the rule that its words name, and its formula."""


class Slip(NamedTuple):
    """An entry of slips.yaml: how grave, what happened, what to do, and its formulas by part."""

    severity: str
    sentence: str
    advice: str
    check: dict[str, str]
    parts: dict[str, list[tuple[str, str]]]


def _slip(entry: dict[str, Any]) -> Slip:
    severity = next(one for one in SEVERITIES if one in entry)
    sentence, _, advice = entry.pop(severity).partition(". ")
    check = {str(key): entry.pop(key) for key in ("when", "found", "expected") if key in entry}
    parts = dict[str, list[tuple[str, str]]]()
    for part, rules in entry.items():
        for rule, each in (rules if isinstance(rules, dict) else {"": rules}).items():
            formulas = [each] if isinstance(each, str) else each
            parts.setdefault(part, []).extend((str(rule), str(one)) for one in formulas)
    return Slip(severity, sentence, advice, check, parts)


_ENTRIES = yaml.safe_load(Path(__file__).with_name("slips.yaml").read_text(encoding="utf-8"))
SLIPS = {name: _slip(entry) for name, entry in _ENTRIES.items()}


class Reading(NamedTuple):
    """What figures become by one slip or two: their names, the rules, a cost, and the values."""

    names: tuple[str, ...]
    rules: tuple[str, ...]
    cost: float
    values: Interval


class Named(NamedTuple):
    """The reading of some figures, and others with as much evidence."""

    names: tuple[str, ...]
    rules: tuple[str, ...]
    also: tuple[str, ...]
    place: np.ndarray


def named(cells: Cells, one: Verdict, wrong: np.ndarray, opened: np.ndarray) -> list[Named]:
    """Return the slips that explain what is `wrong`: again for what is left, three at most.

    The evidence is how seldom chance would meet as many different figures, less the number of
    readings tried and of ways to choose the figures. What may be right (`opened`), or has nothing
    to be held against, is explained only by a slip of all of its column or most of it.
    """
    suspects, unsure, found = wrong | opened | one.open, opened | one.open, list[Named]()
    every = list(_readings(cells, one, suspects)) if suspects.any() else []
    if not every:
        return []
    low, high = (np.stack(ends) for ends in zip(*(x.values for x in every), strict=True))
    values = Interval(low, high)
    meets, near = one.said.meets(values), one.said.near(one.right)
    width = (one.said.high - one.said.low) + (high - low)
    size = np.fmax(np.abs(one.said.middle), np.abs(one.right.middle))
    luck = np.clip(np.nan_to_num(width / size / SPREAD, nan=1.0), 1e-6, 1.0)
    surprise = np.where(meets, -np.log(luck), 0.0)
    singles = len({x.names for x in every if len(x.names) == 1})
    costs = np.array([x.cost for x in every]) + math.log(singles or 1)
    costs -= WHOLE * ((surprise > 0) | ~(one.said.known & (cells.gpus > 1))).all(-1)
    # Figures that are the same say the same once.
    once, places = np.zeros(len(cells.gpus), bool), np.flatnonzero(suspects)
    once[places[np.unique(one.said.middle[places], return_index=True)[1]]] = True
    while suspects.any() and len(found) < 3:
        there = meets & suspects
        count, total = there.sum(-1), int(suspects.sum())
        score = (surprise * (there & once)).sum(-1) - costs
        score -= np.array([_ways(total, some) for some in range(total + 1)])[count]
        score[~(there & ~near).any(-1)] = -np.inf
        if unsure.any():
            most = (unsure & there).sum(-1) * 2 > unsure.sum()
            score[(opened & ~there).any(-1) | ~most | (count < 2)] = -np.inf
        best = int(score.argmax())
        if score[best] <= CHANCE:
            break
        place = there[best]
        if place.sum() > 1:
            place = place | (suspects & one.said.near(values[best]))
        other = ~np.isclose(values.low[:, place], values.low[best, place]).all(-1)
        equal = np.flatnonzero((score > score[best] - 1) & (count == count[best]) & other)
        also = dict.fromkeys(n for i in equal for n in every[i].names if len(every[i].names) == 1)
        others = tuple(name for name in also if name not in every[best].names)[:2]
        found.append(Named(*every[best][:2], others, place))
        suspects = suspects & ~place & ~unsure
    return found


def _ways(total: int, some: int) -> float:
    """The logarithm of the number of ways to choose `some` of `total`."""
    return math.lgamma(total + 1) - math.lgamma(some + 1) - math.lgamma(total - some + 1)


def _readings(cells: Cells, one: Verdict, suspects: np.ndarray) -> Iterator[Reading]:
    """Yield what each slip, or two, make of every cell, from each accepted formula."""

    def fit(value: Interval) -> Interval:
        values = value * common((one.said / value).where(suspects, UNKNOWN))
        return values if (one.said.meets(values) & suspects).sum() > 2 else UNKNOWN * value

    names: dict[str, Any] = {"fit": fit, "rate_": cells.names["bandwidth"]}
    if one.quantity == "bandwidth" and not cells.names["K"].known.any():
        names["K"] = LAB
    entries = FORMULAS["definitions"].get(one.quantity, {"": "rate_ * share"}).values()
    formulas = [entry[0] if isinstance(entry, list) else entry for entry in entries]
    for number, text in enumerate(formulas):
        formula = re.sub(r"part\((.*)\)$", r"\1", text)
        if "full" not in formula and ("T1b" not in formula or "T1b" in cells.names):
            for reading in _of_formula(cells, one.quantity, formula, names):
                meets = one.said.meets(reading.values) & suspects
                if meets.sum() >= len(reading.names):
                    yield reading._replace(cost=reading.cost + 0.1 * number)


def _of_formula(
    cells: Cells, quantity: str, formula: str, names: dict[str, Any]
) -> Iterator[Reading]:
    """Yield the readings of one formula: a slip in a part, in the whole, and two together."""
    zero = cells.names["N"] * 0.0
    value = cells.evaluate(formula, **names) + zero
    parts = dict[str, list[tuple[Way, Interval]]]()
    for part in dict.fromkeys(re.findall(r"\b[A-Za-z]\w*", formula)):
        right = cells.evaluate(part, **names)
        for way in _under(cells, ALIKE.get(part, part)):
            text = way[2]
            if part.startswith("W"):
                text = TIME.sub(lambda time: {"T": "W", "W": "T"}[time[1]], text)
            taken = cells.evaluate(text, **names, value=right) + zero
            parts.setdefault(part, []).append((way, taken))
    wholes = [way for key in (quantity, "any") for way in _under(cells, key) if way[2] != quantity]
    then = [way for way in wholes if way[2].startswith("value")]
    pairs = len(cells.gpus) <= LARGE
    changed = {
        (part, way): cells.evaluate(formula, **names | {part: taken}) + zero
        for part, each in parts.items()
        for way, taken in each
    }
    for (_, (name, rule, text)), values in changed.items():
        yield Reading((name,), (rule or text,), 0.0, values)
    for name, rule, text in wholes:
        values = cells.evaluate(text, **names, value=value) + zero
        yield Reading((name,), (rule or text,), 0.0, values)
    for (_, (name, rule, text)), values in changed.items() if pairs else ():
        for other, own, whole in then:
            both = cells.evaluate(whole, **names, value=values)
            yield Reading((name, other), (rule or text, own or whole), PAIR, both)
    several = parts.items() if quantity == "bandwidth" and pairs else []
    for (a, first), (b, second) in combinations(several, 2):
        for (x, left), (y, right) in ((x, y) for x in first for y in second):
            both = cells.evaluate(formula, **names | {a: left, b: right})
            yield Reading((x[0], y[0]), (x[1] or x[2], y[1] or y[2]), PAIR, both)


def _under(cells: Cells, key: str) -> Iterator[Way]:
    """Yield the slips under a part or a quantity, with each number or name that they may be of."""
    every = {
        "M": np.unique(cells.gpus[cells.gpus > 1]).tolist(),
        "B": np.unique(cells.batch[cells.gpus == 1]).tolist(),
        "G": [name for name in cells.others if "'" not in name],
    }
    for name, slip in SLIPS.items():
        for rule, text in slip.parts.get(key, []):
            letter = next((one for one in every if re.search(rf"\b{one}\b", text)), "")
            if not letter:
                yield name, rule, text
            for one in every.get(letter, [])[:TRIED]:
                yield name, str(one), re.sub(rf"\b{letter}\b", str(one).replace("\\", ""), text)
