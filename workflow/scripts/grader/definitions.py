"""Which definition of each printed quantity a study follows, where not, and what slips give."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from grader.cells import FORMULAS, PARAMETERS, Cells
from grader.intervals import NEARLY, Interval, of

BANDWIDTH, UTILIZATION = "bandwidth_gb_per_s", "utilization_percent"
STATED_PEAK = "bandwidth / the stated peak"
ONE = of(1.0)
AROUND = Interval(np.array(1 - NEARLY), np.array(1 + NEARLY))
"""A factor of hardly more or less than 1."""
SUSPECTS = 40
"""Cells or numbers of GPUs beyond these are not tried as causes: a study has a few dozen."""
DEFINITIONS: dict[str, dict[str, str]] = FORMULAS["definitions"]


@dataclass(frozen=True)
class Verdict:
    """What the figures of one quantity, as printed, should have been by a definition.

    A figure may be in any of the intervals `values`: more than one where a document may have gone
    on from a figure it printed, or from the same one before it was rounded. `source` is the formula
    of formulas.yaml that they are by, for a utilization that of its bandwidth with its
    constant `scale`. `constant` is what nobody states and the figures give. `unchecked` says
    by a name of mistakes.yaml why there is no value, `remark` what is particular.
    """

    cells: Cells
    quantity: str
    formula: str
    constant: Interval
    source: str
    scale: Interval = ONE
    unchecked: str = ""
    remark: str = ""

    @cached_property
    def said(self) -> Interval:
        return self.cells.columns[self.quantity]

    @cached_property
    def values(self) -> list[Interval]:
        values = _values(self.cells, self.quantity, self.source, self.scale)
        return [value * self.constant for value in values]

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
    def votes(self) -> tuple[int, int]:
        """How many figures on several GPUs agree, and how many by the first of the values."""
        several = self.cells.gpus > 1
        nearest = self.said.meets(self.values[0])
        return int((self.agrees & several).sum()), int((nearest & several).sum())


def _values(cells: Cells, quantity: str, formula: str, scale: Interval = ONE) -> list[Interval]:
    """Each interval that a definition gives; of a utilization 100 times those of its bandwidth."""
    value = cells.evaluate(formula) * scale
    if quantity not in (BANDWIDTH, UTILIZATION):
        return [value]
    values = [value, cells.evaluate(formula, moving=cells.names["rest"]) * scale]
    if quantity == BANDWIDTH:
        return values
    return [rate * 100.0 for rate in (cells.columns[BANDWIDTH].or_derived(value), *values)]


def verdicts(cells: Cells, stated: dict[str, Any], ring: bool = False) -> dict[str, Verdict]:
    """Hold every printed figure against the definition that the study follows.

    It is the one it states, else the one that gives most of its figures on several GPUs, of
    bandwidths as good the one that gives most utilizations, ours first among equals. `ring` says
    that DataParallel was to be counted with a ring's bytes.
    """
    found, peak = {}, stated.get(UTILIZATION)

    def gives(one: Verdict) -> Any:
        rates = one.quantity == BANDWIDTH and _utilization(cells, one, peak).votes
        return one.votes, rates, int(one.wrong.any())

    for quantity, choices in DEFINITIONS.items():
        order = list(reversed(choices)) if ring and "ring" in choices else list(choices)
        options = []
        for name in [stated[quantity]] if quantity in stated else order:
            constant, formula = ONE, choices[name]
            if quantity == BANDWIDTH and np.isnan(cells.gradient_bytes):
                constant = _constant(cells, quantity, formula)
            particular = name == "ring" != order[0] and cells.strategy == "dp"
            remark = "ring_for_dp" if particular and quantity not in stated else ""
            unchecked = "" if constant.known.any() else "no_parameters"
            options.append(
                Verdict(cells, quantity, formula, constant, formula, ONE, unchecked, remark)
            )
        found[quantity] = max(options, key=gives)
    return found | {UTILIZATION: _utilization(cells, found[BANDWIDTH], peak)}


def _utilization(cells: Cells, rates: Verdict, peak: Any) -> Verdict:
    """Bandwidth over the peak stated; else over one number, or one for each N, that they share."""
    gpus, source, scale = cells.gpus.tolist(), rates.source, rates.constant
    if peak is not None:
        each = peak if isinstance(peak, dict) else dict.fromkeys(gpus, peak)
        share = of(1 / np.array([each.get(n, np.nan) for n in gpus]))
        return Verdict(cells, UTILIZATION, STATED_PEAK, share, source, scale)
    one, each_n = (_constant(cells, UTILIZATION, source, scale, by) for by in (False, True))
    name = f"bandwidth / {np.nanmin(1 / one.middle, initial=np.inf):.3g} GB/s"
    options = [
        Verdict(cells, UTILIZATION, name, one, source, scale, remark="one_peak"),
        Verdict(cells, UTILIZATION, "bandwidth / a peak for each N", each_n, source, scale),
    ]
    said = options[0].said.known & (cells.gpus > 1)
    alone = np.isin(cells.gpus, [gpus[i[0]] for i in cells.groups if said[i].sum() < 2])
    off = [(said & ~option.agrees) for option in options]
    chosen = options[int((off[1] & ~alone).sum() < off[0].sum())]
    if chosen.constant.known.any():
        return chosen
    return replace(chosen, formula="", unchecked="no_peak", remark="")


def _constant(
    cells: Cells, quantity: str, formula: str, scale: Interval = ONE, by_gpus: bool = False
) -> Interval:
    """What a definition is multiplied by, in all or for each N, in most of what is printed.

    Unknown unless two cells, and more than half of them, agree on one: an equation for each
    unknown explains nothing.
    """
    ratio = cells.columns[quantity] / _values(cells, quantity, formula, scale)[0]
    usable = ratio.known & np.isfinite(ratio.high) & (ratio.high > 0) & (cells.gpus > 1)
    low, high = np.full((2, len(cells.gpus)), np.nan)
    for place in cells.groups if by_gpus else [np.arange(len(low))]:
        same = place[usable[place]]
        if len(same) < 2:
            continue
        lows, highs = np.sort(ratio.low[same]), np.sort(ratio.high[same])
        counts = np.arange(1, len(lows) + 1) - np.searchsorted(highs, lows * (1 - 1e-12))
        best = lows[int(counts.argmax())]
        if counts.max() > max(1, len(lows) / 2):
            there = same[(ratio.low[same] <= best) & (ratio.high[same] >= best)]
            low[place], high[place] = ratio.low[there].max(), ratio.high[there].min()
        elif by_gpus:
            low[place] = high[place] = np.inf
    return Interval(low, high) if np.isfinite(low).any() else Interval(low * np.nan, high * np.nan)


@dataclass(frozen=True)
class Slip:
    """A mistake of mistakes.yaml, and what it makes of each figure."""

    name: str
    values: Interval
    rule: str = ""


def slips(cells: Cells, one: Verdict) -> Iterator[Slip]:
    """Every slip of a quantity, by the definition that the study follows and then by others."""
    own, size = {one.source: one.values[0]}, one.constant
    if one.unchecked == "no_parameters":
        # Slips that no other number explains are tried with that of the lab's network.
        size = of(4.0 * PARAMETERS["resnet18-cifar"])
        own = {one.source: cells.evaluate(one.source) * size}
    names = {"ring": "ring_for_dp", "strategy": "broadcast_for_ring"}
    for name, formula in DEFINITIONS.get(one.quantity, {}).items():
        if formula != one.source:
            own[formula] = cells.evaluate(formula) * size
            yield Slip(names.get(name, "other_times"), own[formula], formula)
    special, common = FORMULAS["slips"][one.quantity], FORMULAS["slips"]["any"]
    if one.quantity not in DEFINITIONS:
        common = common + FORMULAS["slips"][BANDWIDTH]
    yield from _of_formulas(cells, one, own, special)
    yield from _of_others(cells, one)
    yield from _of_formulas(cells, one, own, common)
    every = [(x, way) for x, *ways in special for way in ways if "value" in way]
    factors = [(x, cells.evaluate(way, value=cells.names["one"])) for x, way in every]
    for (x, first), (y, second) in combinations(factors, 2):
        for base in own.values() if one.quantity == BANDWIDTH and x != y else ():
            yield Slip(f"{x};{y}", base * first * second)


def _of_formulas(
    cells: Cells, one: Verdict, own: dict[str, Interval], rows: list[list[str]]
) -> Iterator[Slip]:
    for key, formula in ((key, each) for key, *ways in rows for each in ways):
        name, _, rule = key.partition(" of ")
        if cells.strategy == "dp" and name == "no_ring_factor":
            name = "one_way"
        if formula != one.quantity:
            for base in own.values() if "value" in formula else [own[one.source]]:
                yield Slip(name, cells.evaluate(formula, value=base), rule)


def _of_others(cells: Cells, one: Verdict) -> Iterator[Slip]:
    """What a figure is of other cells: of their N, batch size or share of T(1,b)."""
    for m in sorted(set(cells.gpus.tolist()) - {1})[:SUSPECTS]:
        yield Slip("other_gpus", one.values[0].take(cells.of_batch(m)), f"{m} GPUs")
        for formula in FORMULAS["other_share"].get(one.quantity, ()):
            other = cells.evaluate(formula, M=m, value=one.values[0])
            yield Slip("other_share", other, f"T(1,b) / {m}")
        if one.quantity == "speedup":
            own = cells.names["T"]
            yield Slip("two_gpu_baseline", own.take(cells.of_batch(m)) / own, f"T({m},b)")
    if one.quantity == "speedup":
        for b in np.unique(cells.batch[cells.gpus == 1])[:SUSPECTS].tolist():
            single = cells.of_batch(1, np.full_like(cells.batch, b))
            for times in (cells.names["T"], cells.names["W"]):
                yield Slip("one_baseline", times.take(single) / times, f"T(1,{b})")
    there = np.unique(cells.gpus[one.said.known])
    if one.quantity == "compute_seconds" and len(there) > 1:
        few, more = (one.said.take(cells.of_batch(n)) for n in there[:2])
        other = few.where(cells.gpus != there[0], more)
        large = (cells.gpus > 1) & (one.said.low > one.values[0].high)
        yield Slip("same_for_all", (other * AROUND).where(large, other * np.nan))
