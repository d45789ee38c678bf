"""Which printed figures follow from an accepted formula, and what the others should be."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from grader.formulas import FORMULAS, Cells
from grader.intervals import UNKNOWN, Interval, common, of


@dataclass(frozen=True)
class Verdict:
    """What the figures of one quantity, as printed, should be by the formulas that are accepted.

    A figure is right that meets any of `values`, each with the remark for figures that only it has;
    `right` is the value of the formula that most figures follow.
    """

    quantity: str
    said: Interval
    values: list[tuple[str, Interval]]
    several: np.ndarray

    @cached_property
    def meets(self) -> list[np.ndarray]:
        return [self.said.meets(value) for _, value in self.values]

    @cached_property
    def agrees(self) -> np.ndarray:
        return np.logical_or.reduce([*self.meets, np.zeros(len(self.several), bool)])

    @cached_property
    def known(self) -> np.ndarray:
        return np.logical_or.reduce([value.known for _, value in self.values])

    @cached_property
    def best(self) -> int:
        """The formula that most figures on several GPUs follow, the first among equals."""
        votes = [
            (not note, int((meets & self.several).sum()))
            for (note, _), meets in zip(self.values, self.meets, strict=True)
        ]
        return votes.index(max(votes))

    @cached_property
    def right(self) -> Interval:
        right = self.values[self.best][1]
        for _, value in self.values:
            right = right.or_else(value)
        return right

    @cached_property
    def wrong(self) -> np.ndarray:
        return np.asarray(self.said.known & self.known & ~self.agrees)

    @property
    def open(self) -> np.ndarray:
        """Where there is a figure and nothing to hold it against."""
        return np.asarray(self.said.known & ~self.known)

    def remarks(self) -> Iterator[tuple[str, np.ndarray]]:
        """Yield the remark of each formula, with the figures that only it explains."""
        rest, pairs = self.agrees, zip(self.values, self.meets, strict=True)
        for (note, _), meets in sorted(pairs, key=lambda pair: bool(pair[0][0])):
            if note:
                yield note, meets & rest
            rest = rest & ~meets


def verdicts(cells: Cells, stated: dict[str, Any]) -> dict[str, Verdict]:
    """Return every printed figure with the values that are accepted; the cells get what was fitted.

    A stated definition is the only one. The peak and, where nobody states it, the number of
    parameters are those that more than half of the figures share.
    """
    names, found = cells.names, dict[str, Verdict]()

    def judge(quantity: str, more: dict[str, Any]) -> Verdict:
        values = []
        for name, entry in FORMULAS["definitions"][quantity].items():
            formula, note = entry if isinstance(entry, list) else (entry, "")
            if stated.get(quantity, name) == name:
                try:
                    values.append((note, cells.evaluate(formula, **more) + cells.names["N"] * 0.0))
                except NameError:
                    continue
        return Verdict(quantity, names[quantity], values, cells.gpus > 1)

    compute = names["compute"]
    found["compute"] = judge("compute", {})
    right = found["compute"]
    # A document goes on from the compute that it printed, where that is right.
    names["part"] = lambda value: value.hull(compute).where(
        right.agrees & compute.meets(value), value
    )
    for quantity in FORMULAS["definitions"]:
        if quantity not in ("compute", "bandwidth", "utilization"):
            found[quantity] = judge(quantity, {})
    comm = found["communication"]
    derived = comm.right
    width = np.nanmax(comm.said.high - comm.said.low, initial=0.0) / 2 or 0.1
    rest = Interval(derived.low - width, derived.high + width)
    names["rest"], names["moving"] = derived, comm.said.or_else(rest)
    chained = [names["moving"], *(value for note, value in comm.values if not note)]

    def bandwidth(size: Interval) -> Verdict:
        judged = [judge("bandwidth", {"moving": moving, "K": size}) for moving in chained]
        return replace(judged[0], values=[v for one in judged for v in one.values])

    options = [names["K"]]
    if not names["K"].known.any() and not names["bytes"].known.any():
        options += [of(4.0 * count) for count in FORMULAS["parameters"].values()]
    fits = [(bandwidth(size), size) for size in options]
    enough = [
        (one, size)
        for i, (one, size) in enumerate(fits)
        if not i or one.agrees.sum() > max(1, one.said.known.sum() / 2)
    ]
    found["bandwidth"], size = max(enough, key=lambda one: int(one[0].agrees.sum()))
    names["K"] = size
    rates = [names["bandwidth"], *(value for _, value in found["bandwidth"].values)]
    found["utilization"], share = _utilization(cells, rates, stated.get("utilization"))
    names |= {"share": share, "stated": "utilization" in stated or names["peak"].known.any()}
    return found


def _utilization(cells: Cells, rates: list[Interval], peak: Any) -> tuple[Verdict, Interval]:
    """Bandwidth over the peak stated; else over what most figures of as many GPUs share."""
    said, gpus = cells.names["utilization"], cells.gpus
    if peak is None and cells.names["peak"].known.any():
        share = of(100.0) / cells.names["peak"]
        share = share.where(~(said.high <= 1.5) | ~said.known, share / 100)
    elif peak is not None:
        each = peak if isinstance(peak, dict) else dict.fromkeys(gpus.tolist(), peak)
        share = of(100 / np.array([each.get(n, np.nan) for n in gpus.tolist()]))
    else:
        ratio = (said / rates[0].or_else(rates[-1])).where(gpus > 1, UNKNOWN)
        low, high = np.full((2, len(gpus)), np.nan)
        for number in np.unique(gpus):
            place = gpus == number
            low[place], high[place] = common(ratio[place])
        whole = common(ratio)
        share = Interval(low, high) if np.isfinite(low).any() else whole + np.zeros(len(gpus))
    values = [("", rate * share) for rate in rates]
    return Verdict("utilization", said, values, gpus > 1), share
