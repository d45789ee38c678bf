"""Which definition of each printed quantity a study follows, and which mistakes are known."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from grader.cells import FORMULAS, PARAMETERS, UNKNOWN, Cells
from grader.intervals import Interval, common, of
from grader.study import BYTES_PER_PARAMETER

BANDWIDTH, UTILIZATION = "bandwidth_gb_per_s", "utilization_percent"
RATE = "images_per_second"
ONE, CLOSE = of(1.0), 1.002
DEFINITIONS: dict[str, dict[str, str]] = FORMULAS["definitions"]
SEVERITIES = ["error", "warning", "info"]


@dataclass(frozen=True)
class Mistake:
    """How grave it is, what happened, what to do about it, and the formulas that tell it.

    `formulas` has (rule, formula) for each way to take a part or a quantity wrongly; `when` the
    columns in which a formula sees it.
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
        formulas = dict[str, list[tuple[str, str]]]()
        for key, ways in entry.items():
            for rule, each in (ways if isinstance(ways, dict) else {"": ways}).items():
                every = [each] if isinstance(each, str) else each
                formulas.setdefault(key, []).extend((str(rule or one), one) for one in every)
        return cls(severity, sentence, advice, formulas, **others)


_ENTRIES = yaml.safe_load(Path(__file__).with_name("mistakes.yaml").read_text(encoding="utf-8"))
MISTAKES = {name: Mistake.of(entry) for name, entry in _ENTRIES.items()}


@dataclass(frozen=True)
class Verdict:
    """What the figures of one quantity, as printed, should have been by a definition.

    A figure may be in any of the intervals `values`: a document may have gone on from a figure as
    printed, or before it was rounded. `formula` is one of formulas.yaml, for a utilization that of
    its bandwidth. `note` is that the constant was `stated`, or a mistake's name.
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
        if self.quantity == "communication_seconds":
            # A document goes on from the compute that it printed.
            letter, compute = self.formula[0], cells.columns["compute_seconds"]
            share = cells.names[f"{letter}1"] / cells.names["N"]
            same = compute.meets(share) | ~share.known
            rest = (cells.names[letter] - compute).where(same, value)
            return [value.where(value.known, rest), rest]
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
        """Where that is for want of K or of the peak, or K is of no network known here."""
        constants = {BANDWIDTH: "K", UTILIZATION: "share"}
        constant = self.cells.names[constants.get(self.quantity, "N")]
        if self.quantity == BANDWIDTH and foreign(self.cells):
            return self.agrees
        return self.open & ~constant.known.any()

    @property
    def rule(self) -> str:
        """The peak where one for all is fitted."""
        fitted = self.note == "one_peak" and self.cells.names["share"].known.any()
        return f"{np.nanmin(100 / self.cells.names['share'].middle):.3g} GB/s" if fitted else ""

    @property
    def votes(self) -> tuple[int, int]:
        """How many figures on several GPUs agree, and how many by the first of the values."""
        several = self.cells.gpus > 1
        nearest = self.said.meets(self.values[0])
        return int((self.agrees & several).sum()), int((nearest & several).sum())


def verdicts(cells: Cells, stated: dict[str, Any], ring: bool = False) -> dict[str, Verdict]:
    """Return every printed figure with the definition that the study follows.

    The one it states, else the one that gives most figures on several GPUs, of bandwidths as good
    that which gives most utilizations, ours first among equals, or with `ring` for DataParallel a
    ring's. The cells returned have the constants that were fitted.
    """
    found, peak = {}, stated.get(UTILIZATION)

    def gives(one: Verdict) -> Any:
        rates = one.quantity == BANDWIDTH and _utilization(one, peak).votes
        return one.votes, rates, int(one.wrong.any())

    for quantity, choices in DEFINITIONS.items():
        names = [stated[quantity]] if quantity in stated else list(choices)
        if ring and "ring" in names:
            names.reverse()
        options = []
        for name in names:
            one = Verdict(cells, quantity, choices[name])
            if quantity == BANDWIDTH and not cells.names["K"].known.any():
                one = _fitted(one, "K")
            if name == "ring" != names[0] and cells.strategy == "dp":
                one = replace(one, note="ring_for_dp")
            options.append(one)
        found[quantity] = max(options, key=gives)
    found[UTILIZATION] = _utilization(found[BANDWIDTH], peak)
    cells = found[UTILIZATION].cells
    return {quantity: replace(one, cells=cells) for quantity, one in found.items()}


def foreign(cells: Cells) -> bool:
    """Whether the bytes of all gradients are fitted, closely, and of no network known here."""
    names, size = cells.names, cells.names["K"]
    if not ((size.high > size.low) & (size.high < size.low * CLOSE)).any():
        return False
    several = cells.gpus > 1
    shares = [names["one"], names["own"] / names["ring"], names["ring"] / names["own"]]
    return not any(
        (share * size).meets(of(float(BYTES_PER_PARAMETER * known)))[several].all()
        for share in shares
        for known in PARAMETERS.values()
    )


def _utilization(rates: Verdict, peak: Any) -> Verdict:
    """Bandwidth over the peak stated; else over one number, or one for each N, that they share."""
    cells, gpus = rates.cells, rates.cells.gpus.tolist()
    own = Verdict(cells, UTILIZATION, rates.formula)
    if peak is not None:
        each = peak if isinstance(peak, dict) else dict.fromkeys(gpus, peak)
        share = of(100 / np.array([each.get(n, np.nan) for n in gpus]))
        return replace(own, cells=cells.with_values({"share": share}), note="stated")
    options = [replace(_fitted(own, "share"), note="one_peak"), _fitted(own, "share", by_gpus=True)]
    said = own.said.known & (cells.gpus > 1)
    alone = np.isin(cells.gpus, [gpus[i[0]] for i in cells.groups if said[i].sum() < 2])
    off = [(said & ~option.agrees) for option in options]
    return options[int((off[1] & ~alone).sum() < off[0].sum())]


def _fitted(one: Verdict, name: str, by_gpus: bool = False) -> Verdict:
    """`one` with a constant, in all or for each N, that gives most of what is printed.

    Unknown unless two cells, and more than half of them, agree on one: an equation for each
    unknown explains nothing.
    """
    cells = one.cells
    ratio = one.said / replace(one, cells=cells.with_values({name: ONE})).values[0]
    ratio = ratio.where(cells.gpus > 1, UNKNOWN)
    constant = UNKNOWN if by_gpus else common(ratio)
    if by_gpus:
        low, high = np.full((2, len(cells.gpus)), np.nan)
        for place in cells.groups:
            found = common(ratio.take(place))
            low[place], high[place] = found.low, found.high
            if ratio.known[place].sum() > 1 and not found.known:
                # No number is as good as any where those of one N do not agree on it.
                low[place] = high[place] = np.inf
        if np.isfinite(low).any():
            constant = Interval(low, high)
    return replace(one, cells=cells.with_values({name: constant}))
