"""Explain wrong figures by the slips (mistakes) of slips.yaml, tried on each accepted formula."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from grader.formulas import FORMULAS, TITLE, Cells, Verdict, formulas
from grader.intervals import UNKNOWN, Interval, of

SEVERITIES = ["error", "warning", "info"]
CHANCE, SPREAD = -math.log(0.05), 4.0
"""The evidence that names a slip, -ln(5 %); a wrong figure may lie within a factor of e⁴."""
LEAST = 3
"""Least number of figures that a slip has to explain, of which two differ."""
WHOLE, TRIED = 1.6, 40
"""Gain in evidence of a whole column; limit of values to try for M, B or G."""
LAB = of(4.0 * FORMULAS["parameters"]["resnet18-cifar"])
ALIKE = {"ring": "sent", "W": "T", "W1": "T1"}
TIME = re.compile(r"\b([TW])(?=1?\b)")
SLIPS: dict[str, dict[str, Any]] = yaml.safe_load(
    Path(__file__).with_name("slips.yaml").read_text(encoding="utf-8")
)


@dataclass
class Finding:
    """One cause (a key of `SLIPS`), with its cells and their printed and expected values.

    `rule` says which form of the slip it is; `also` has slips with as much evidence.
    """

    cause: str
    cells: Cells
    place: np.ndarray
    printed: Interval = UNKNOWN
    expected: Interval = UNKNOWN
    quantity: str = ""
    rule: str = ""
    also: str = ""

    @property
    def severity(self) -> str:
        return next(one for one in SEVERITIES if one in SLIPS[self.cause])

    @property
    def words(self) -> tuple[str, str]:
        """Return what happened, as a sentence, and what to do."""
        text, _, advice = SLIPS[self.cause][self.severity].partition(". ")
        subject = FORMULAS["quantities"][self.quantity][TITLE] if self.quantity else ""
        start, end = (
            f"the printed {subject} " * bool(subject),
            f"; also fits: {self.also}".replace("_", " "),
        )
        sentence = " ".join(text.format(rule=self.rule).split())
        return start + sentence + end * bool(self.also), advice


def named(cells: Cells, one: Verdict, wrong: np.ndarray, opened: np.ndarray) -> list[Finding]:
    """Return up to three causes: each explains some of the figures that are `wrong`.

    The evidence is -ln of the chance to meet as many different figures, less the logarithms of the
    number of slips tried and of the ways to choose the figures. If some figures may be right
    (`opened`) or have no value to compare, a cause has to explain all of `opened` and most of both.
    """
    suspects, unsure, causes = wrong | opened | one.open, opened | one.open, list[Finding]()
    every = list(_readings(cells, one, suspects)) if suspects.any() else []
    if not every:
        return []
    slips, ends = [slip for slip, _ in every], np.stack([value.ends for _, value in every], axis=1)
    values = Interval(ends)
    meets, near = one.printed.meets(values), one.printed.near(one.right)
    width = (one.printed.high - one.printed.low) + (values.high - values.low)
    size = np.fmax(np.abs(one.printed.middle), np.abs(one.right.middle))
    luck = np.clip(np.nan_to_num(width / size / SPREAD, nan=1.0), 1e-6, 1.0)
    surprise = np.where(meets, -np.log(luck), 0.0)
    whole = ((surprise > 0) | ~(one.printed.known & cells.several)).all(-1)
    gain = WHOLE * whole - math.log(len(set(slips)))
    # Equal figures are one piece of evidence.
    once, places = np.zeros(len(cells.gpus), bool), np.flatnonzero(suspects)
    once[places[np.unique(one.printed.middle[places], return_index=True)[1]]] = True
    while suspects.any() and len(causes) < 3:
        there = meets & suspects
        count, total = there.sum(-1), int(suspects.sum())
        ways = np.array([_ways(total, some) for some in range(total + 1)])[count]
        score = (surprise * (there & once)).sum(-1) + gain - ways
        few = (count < LEAST) | ((there & once).sum(-1) < 2)
        score[~(there & ~near).any(-1) | few] = -np.inf
        if unsure.any():
            most = (unsure & there).sum(-1) * 2 > unsure.sum()
            score[(opened & ~there).any(-1) | ~most] = -np.inf
        best = int(score.argmax())
        if score[best] <= CHANCE:
            break
        place = there[best] | (suspects & one.printed.near(Interval(ends[:, best])))
        other = ~np.isclose(values.low[:, place], values.low[best, place]).all(-1)
        equal = np.flatnonzero((score > score[best] - 1) & (count == count[best]) & other)
        cause, rule = slips[best]
        also = dict.fromkeys(" ".join(slips[i]).strip() for i in equal if slips[i][0] != cause)
        about = (one.printed, one.right, one.quantity, rule, ", ".join([*also][:2]))
        causes.append(Finding(cause, cells, place, *about))
        suspects = suspects & ~place & ~unsure
    return causes


def _ways(total: int, some: int) -> float:
    """Return the logarithm of the number of ways to choose `some` of `total`."""
    return math.lgamma(total + 1) - math.lgamma(some + 1) - math.lgamma(total - some + 1)


def _readings(
    cells: Cells, one: Verdict, suspects: np.ndarray
) -> Iterator[tuple[tuple[str, str], Interval]]:
    """Yield slips, each with its rule, and all figures with it; those that meet no figure not."""
    unknown = one.quantity == "bandwidth" and not cells.names["K"].known.any()
    names: dict[str, Any] = {"K": LAB} if unknown else {}
    for text, _ in formulas(one.quantity):
        formula = re.sub(r"part\((.*)\)$", r"\1", text)
        value, parts = cells.evaluate(formula, **names), re.findall(r"\b[A-Za-z]\w*", formula)
        for slip, part, change in _changes(cells):
            for name in dict.fromkeys(parts) if part not in (one.quantity, "any") else [part]:
                if ALIKE.get(name, name) != part or change == one.quantity:
                    continue
                swapped = TIME.sub(lambda time: {"T": "W", "W": "T"}[time[1]], change)
                changed = swapped if name.startswith("W") else change
                is_part = name in parts and name in cells.names
                right = cells.evaluate(name, **names) if is_part else value
                values = cells.evaluate(changed, **names, value=right)
                if name in parts:
                    values = cells.evaluate(formula, **names | {name: values})
                if (one.printed.meets(values) & suspects).any():
                    yield slip, values


def _changes(cells: Cells) -> Iterator[tuple[tuple[str, str], str, str]]:
    """Yield each slip and rule, the part that it changes, and the formula, without M, B and G."""
    every = {
        "M": np.unique(cells.gpus[cells.gpus > 1]).tolist(),
        "B": np.unique(cells.batch[cells.gpus == 1]).tolist(),
        "G": cells.others,
    }
    for name, slip in SLIPS.items():
        for part, rules in slip.items():
            for rule, texts in (rules if isinstance(rules, dict) else {"": rules}).items():
                for text in map(str, texts if isinstance(texts, list) else [texts]):
                    letter = next((one for one in every if re.search(rf"\b{one}\b", text)), "")
                    for one in every.get(letter, [letter])[:TRIED]:
                        of_one = f"{rule} ({one})".strip() if letter else str(rule)
                        value = str(one).replace("\\", "")
                        change = re.sub(rf"\b{letter}\b", value, text) if letter else text
                        yield (name, of_one), part, change
