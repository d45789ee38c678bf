"""Explain wrong figures by the slips (mistakes) of slips.yaml, tried on each accepted formula."""

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import yaml

from grader.formulas import FORMULAS, Cells
from grader.intervals import Interval, of
from grader.verdicts import Verdict, formulas

SEVERITIES = ["error", "warning", "info"]
CHANCE, SPREAD = -math.log(0.05), 4.0
"""The evidence that names a slip, -ln(5 %); a wrong figure may lie within a factor of e⁴."""
LEAST = 3
"""Least number of figures that a slip has to explain, of which two differ."""
PAIR, WHOLE, LARGE, TRIED = math.log(60), 1.6, 500, 40
"""Cost of a second slip, gain of a whole column; limits of cells for pairs, of values to try."""
LAB = of(4.0 * FORMULAS["parameters"]["resnet18-cifar"])
ALIKE = {"ring": "sent", "W": "T", "W1": "T1"}
TIME = re.compile(r"\b([TW])(?=1?\b)")


class Slip(NamedTuple):
    """An entry of slips.yaml: severity, what happened, advice, checks, (rule, formula) by part."""

    severity: str
    sentence: str
    advice: str
    when: list[str]
    parts: dict[str, list[tuple[str, str]]]


def _slip(entry: dict[str, Any]) -> Slip:
    severity = next(one for one in SEVERITIES if one in entry)
    sentence, _, advice = entry.pop(severity).partition(". ")
    when = entry.pop("when", [])
    parts = {
        part: [
            (str(rule), str(formula))
            for rule, each in (rules if isinstance(rules, dict) else {"": rules}).items()
            for formula in (each if isinstance(each, list) else [each])
        ]
        for part, rules in entry.items()
    }
    return Slip(severity, sentence, advice, when, parts)


_ENTRIES = yaml.safe_load(Path(__file__).with_name("slips.yaml").read_text(encoding="utf-8"))
SLIPS = {name: _slip(entry) for name, entry in _ENTRIES.items()}


Slips = tuple[tuple[str, str], ...]
"""Names in slips.yaml, each with its rule."""
Reading = tuple[Slips, float, Interval]
"""One or two slips, their cost in evidence, and the values that figures have with them."""


class Named(NamedTuple):
    """The slips that explain the figures at `place`, and other slips with as much evidence."""

    slips: Slips
    also: Slips
    place: np.ndarray


def named(cells: Cells, one: Verdict, wrong: np.ndarray, opened: np.ndarray) -> list[Named]:
    """Return up to three causes: each explains some of the figures that are `wrong`.

    The evidence is -ln of the chance to meet as many different figures, less the logarithms of the
    number of slips tried and of the ways to choose the figures. If some figures may be right
    (`opened`) or have no value to compare, a cause has to explain all of `opened` and most of both.
    """
    suspects, unsure, causes = wrong | opened | one.open, opened | one.open, list[Named]()
    every = list(_readings(cells, one, suspects)) if suspects.any() else []
    if not every:
        return []
    slips, prices, ends = zip(*((x, cost, value.ends) for x, cost, value in every), strict=True)
    low, high = np.stack(ends, axis=1)
    values = Interval(np.stack([low, high]))
    meets, near = one.printed.meets(values), one.printed.near(one.right)
    width = (one.printed.high - one.printed.low) + (high - low)
    size = np.fmax(np.abs(one.printed.middle), np.abs(one.right.middle))
    luck = np.clip(np.nan_to_num(width / size / SPREAD, nan=1.0), 1e-6, 1.0)
    surprise = np.where(meets, -np.log(luck), 0.0)
    costs = np.array(prices) + math.log(len({each for each in slips if len(each) == 1}) or 1)
    costs -= WHOLE * ((surprise > 0) | ~(one.printed.known & cells.several)).all(-1)
    # Equal figures are one piece of evidence.
    once, places = np.zeros(len(cells.gpus), bool), np.flatnonzero(suspects)
    once[places[np.unique(one.printed.middle[places], return_index=True)[1]]] = True
    while suspects.any() and len(causes) < 3:
        there = meets & suspects
        count, total = there.sum(-1), int(suspects.sum())
        score = (surprise * (there & once)).sum(-1) - costs
        score -= np.array([_ways(total, some) for some in range(total + 1)])[count]
        few = (count < LEAST) | ((there & once).sum(-1) < 2)
        score[~(there & ~near).any(-1) | few] = -np.inf
        if unsure.any():
            most = (unsure & there).sum(-1) * 2 > unsure.sum()
            score[(opened & ~there).any(-1) | ~most] = -np.inf
        best = int(score.argmax())
        if score[best] <= CHANCE:
            break
        place = there[best]
        if place.sum() > 1:
            place = place | (suspects & one.printed.near(Interval(values.ends[:, best])))
        other = ~np.isclose(low[:, place], low[best, place]).all(-1)
        equal = np.flatnonzero((score > score[best] - 1) & (count == count[best]) & other)
        also = dict.fromkeys(slips[i][0] for i in equal if len(slips[i]) == 1)
        taken = {name for name, _ in slips[best]}
        others = tuple(slip for slip in also if slip[0] not in taken)[:2]
        causes.append(Named(slips[best], others, place))
        suspects = suspects & ~place & ~unsure
    return causes


def _ways(total: int, some: int) -> float:
    """Return the logarithm of the number of ways to choose `some` of `total`."""
    return math.lgamma(total + 1) - math.lgamma(some + 1) - math.lgamma(total - some + 1)


def _readings(cells: Cells, one: Verdict, suspects: np.ndarray) -> Iterator[Reading]:
    """Yield the values of every cell with one slip or two, for each accepted formula."""
    names: dict[str, Any] = {}
    if one.quantity == "bandwidth" and not cells.names["K"].known.any():
        names["K"] = LAB
    for number, (text, _) in enumerate(formulas(one.quantity)):
        formula = re.sub(r"part\((.*)\)$", r"\1", text)
        for slips, cost, values in _of_formula(cells, one.quantity, formula, names):
            if (one.printed.meets(values) & suspects).sum() >= len(slips):
                yield slips, cost + 0.1 * number, values


def _of_formula(
    cells: Cells, quantity: str, formula: str, names: dict[str, Any]
) -> Iterator[Reading]:
    """Yield the readings of one formula: a slip in a part, in the whole, and both together."""
    zero = cells.names["N"] * 0.0

    def evaluate(text: str, **more: Any) -> Interval:
        return of(cells.evaluate(text, **names | more)) + zero

    value, changed = evaluate(formula), list[tuple[tuple[str, str], Interval]]()
    for part in dict.fromkeys(re.findall(r"\b[A-Za-z]\w*", formula)):
        right = evaluate(part) if part in cells.names else value
        for slip, text in _under(cells, ALIKE.get(part, part)):
            if part.startswith("W"):
                text = TIME.sub(lambda time: {"T": "W", "W": "T"}[time[1]], text)
            changed.append((slip, evaluate(formula, **{part: evaluate(text, value=right)})))
    yield from (((slip,), 0.0, values) for slip, values in changed)
    stack = np.stack([value.ends, *(values.ends for _, values in changed)], axis=1)
    for slip, text in (each for key in (quantity, "any") for each in _under(cells, key)):
        if text != quantity:
            yield (slip,), 0.0, evaluate(text, value=value)
        if text.startswith("value") and len(cells.gpus) <= LARGE:
            both = evaluate(text, value=Interval(stack)).ends
            for i, (first, _) in enumerate(changed, 1):
                yield (first, slip), PAIR, Interval(both[:, i])


def _under(cells: Cells, key: str) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield slips of a part or quantity and their formulas, with each value in place of M, B, G."""
    every = {
        "M": np.unique(cells.gpus[cells.gpus > 1]).tolist(),
        "B": np.unique(cells.batch[cells.gpus == 1]).tolist(),
        "G": cells.others,
    }
    for name, slip in SLIPS.items():
        for rule, text in slip.parts.get(key, []):
            letter = next((one for one in every if re.search(rf"\b{one}\b", text)), "")
            for one in every.get(letter, [letter])[:TRIED]:
                of_one = f"{rule} ({one})".strip() if letter else rule
                formula = re.sub(rf"\b{letter}\b", str(one).replace("\\", ""), text)
                yield (name, of_one), formula if letter else text
