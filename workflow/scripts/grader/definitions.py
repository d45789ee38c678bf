"""Which definition of each printed quantity a study follows, and which mistakes are known."""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import yaml

from grader.cells import DEFINITIONS, PARAMETERS, UNKNOWN, Cells, Interval, common, of
from grader.study import BYTES_PER_PARAMETER

BANDWIDTH, UTILIZATION = "bandwidth_gb_per_s", "utilization_percent"
SEVERITIES = ["error", "warning", "info"]
FITTED = 4.0
"""The cost of a number that is fitted."""


class Mistake(NamedTuple):
    """How grave it is, what happened, what to do, and by which formulas figures show it.

    `when` has one for each column, `found` and `expected` tell what stands there and what should.
    """

    severity: str
    sentence: str
    advice: str
    when: dict[str, str]
    found: str = "column"
    expected: str = "unknown"


class Substitution(NamedTuple):
    """What stands in the place of a part, or of the whole, by a mistake of mistakes.yaml.

    `cost` is the logarithm of how many of its kind are as common.
    """

    name: str
    rule: str
    part: str
    cost: float
    formula: str


def _read(entries: dict[str, Any]) -> tuple[dict[str, Mistake], dict[str, list[Substitution]]]:
    """The mistakes of mistakes.yaml, and for each part the ways to take it wrongly."""
    mistakes, ways = dict[str, Mistake](), dict[str, list[Substitution]]()
    for name, entry in entries.items():
        severity = next(one for one in SEVERITIES if one in entry)
        sentence, _, advice = entry.pop(severity).partition(". ")
        when, ends = entry.pop("when", {}), {*entry} & {"found", "expected"}
        told = {key: entry.pop(key) for key in ends}
        mistakes[name] = Mistake(severity, sentence, advice, when, **told)
        for part, rules in entry.items():
            known = ways.setdefault(part, [])
            rank = len({one.name for one in known}) + 2
            for rule, each in (rules if isinstance(rules, dict) else {"": rules}).items():
                for formula in [each] if isinstance(each, str) else each:
                    cost = math.log(rank) + FITTED * ("fit" in formula)
                    known.append(Substitution(name, str(rule or formula), part, cost, formula))
    return mistakes, ways


_ENTRIES = yaml.safe_load(Path(__file__).with_name("mistakes.yaml").read_text(encoding="utf-8"))
MISTAKES, WAYS = _read(_ENTRIES)


@dataclass(frozen=True)
class Verdict:
    """What the figures of one quantity, as printed, should have been by a definition.

    A figure may be in any of the intervals `values`, as documents go on from rounded figures or
    others. A utilization has the `formula` of its bandwidth. `note` is `stated`, or a mistake.
    """

    cells: Cells
    quantity: str
    formula: str
    note: str = ""

    @cached_property
    def said(self) -> Interval:
        return self.cells.columns[self.quantity]

    @cached_property
    def values(self) -> list[Interval]:
        cells = self.cells
        value = cells.evaluate(self.formula)
        if self.quantity not in (BANDWIDTH, UTILIZATION):
            return [value]
        values = [value, cells.evaluate(self.formula, moving=cells.names["rest"])]
        if self.quantity == BANDWIDTH:
            return values
        rates = [cells.columns[BANDWIDTH].or_derived(value), *values]
        return [rate * cells.names["share"] for rate in rates]

    @cached_property
    def agrees(self) -> np.ndarray:
        return np.logical_or.reduce([self.said.meets(value) for value in self.values])

    @cached_property
    def wrong(self) -> np.ndarray:
        """Where both are known and no value is both."""
        known = np.logical_or.reduce([value.known for value in self.values])
        return np.asarray(self.said.known & known & ~self.agrees)

    @property
    def open(self) -> np.ndarray:
        """Where there is a figure and nothing to hold it against."""
        return np.asarray(self.said.known & ~self.agrees & ~self.wrong)

    @property
    def blank(self) -> np.ndarray:
        """Where that is for want of K or of the peak."""
        constants = {BANDWIDTH: "K", UTILIZATION: "share"}
        constant = self.cells.names[constants.get(self.quantity, "N")]
        return self.open & ~constant.known.any()

    @property
    def votes(self) -> tuple[int, ...]:
        """How many figures on several GPUs agree, and how many by the first of the values."""
        ways = self.agrees, self.said.meets(self.values[0])
        return tuple(int(each[self.cells.gpus > 1].sum()) for each in ways)


def verdicts(cells: Cells, stated: dict[str, Any], ring: bool = False) -> dict[str, Verdict]:
    """Return every printed figure with the definition that the study follows.

    It is the stated one, else the one that gives most figures on several GPUs, of bandwidths also
    most utilizations; ours first among equals, with `ring` a ring's. The cells have the peak that
    was fitted, and the network of the lab that most bandwidths fit where none is stated.
    """
    found, peak, sizes = {}, stated.get(UTILIZATION), [cells.columns["K"]]
    if not sizes[0].known.any():
        sizes += [of(float(BYTES_PER_PARAMETER * count)) for count in PARAMETERS.values()]

    def gives(one: Verdict) -> Any:
        rates = one.quantity == BANDWIDTH and _utilization(one, peak).votes
        return one.votes, rates, int(one.wrong.any())

    for quantity, choices in DEFINITIONS.items():
        names = [stated[quantity]] if quantity in stated else list(choices)
        if ring and "ring" in names:
            names.reverse()
        options = []
        for name, size in product(names, sizes if quantity == BANDWIDTH else sizes[:1]):
            note = "ring_for_dp" if name == "ring" != names[0] and cells.strategy == "dp" else ""
            one = Verdict(cells.with_values({"K": size}), quantity, choices[name], note)
            if size is sizes[0] or one.agrees.sum() > max(1, one.said.known.sum() / 2):
                options.append(one)
        found[quantity] = max(options, key=gives)
    found[UTILIZATION] = _utilization(found[BANDWIDTH], peak)
    cells = found[UTILIZATION].cells
    return {quantity: replace(one, cells=cells) for quantity, one in found.items()}


def _utilization(rates: Verdict, peak: Any) -> Verdict:
    """Bandwidth over the peak stated; else over the number that figures of as many GPUs share.

    Two figures, and more than half of them, have to agree on it.
    """
    cells, gpus = rates.cells, rates.cells.gpus.tolist()
    if peak is not None:
        each = peak if isinstance(peak, dict) else dict.fromkeys(gpus, peak)
        share = of(100 / np.array([each.get(n, np.nan) for n in gpus]))
        cells = cells.with_values({"share": share})
        return Verdict(cells, UTILIZATION, rates.formula, "stated")
    one = Verdict(cells.with_values({"share": of(1.0)}), UTILIZATION, rates.formula)
    ratio = (one.said / one.values[0]).where(cells.gpus > 1, UNKNOWN)
    low, high = np.full((2, len(gpus)), np.nan)
    for place in pd.Series(gpus).groupby(gpus).indices.values():
        found = common(ratio[place])
        # No number is as good as any where those of one N do not agree on it.
        unsure = ratio.known[place].sum() > 1 and not found.known
        low[place], high[place] = of(np.inf) if unsure else found
    share = Interval(low, high) if np.isfinite(low).any() else common(ratio)
    return replace(one, cells=cells.with_values({"share": share}))
