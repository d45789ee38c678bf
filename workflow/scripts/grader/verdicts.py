"""Check which printed figures follow from an accepted formula; compute the right values."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from grader.formulas import FORMULAS, Cells
from grader.intervals import Interval, of

TITLE, QUESTION = 0, 1
"""Indexes in an entry of `quantities` in formulas.yaml; its formulas follow."""


def formulas(quantity: str) -> list[tuple[str, str]]:
    """Return the accepted formulas, each with the remark on figures that only it explains."""
    entries = FORMULAS["quantities"][quantity][QUESTION + 1 :]
    return [tuple(one) if isinstance(one, list) else (one, "") for one in entries]


@dataclass(frozen=True)
class Verdict:
    """The printed figures of one quantity, and their values by each accepted formula.

    A figure is right if it overlaps any of `values`: pairs of a remark, for figures that only this
    formula explains, and intervals. `right` are the values of the formula that most figures follow.
    """

    quantity: str
    printed: Interval
    values: list[tuple[str, Interval]]
    several: np.ndarray

    @cached_property
    def meets(self) -> list[np.ndarray]:
        return [self.printed.meets(value) for _, value in self.values]

    @cached_property
    def agrees(self) -> np.ndarray:
        return np.logical_or.reduce(self.meets)

    @cached_property
    def known(self) -> np.ndarray:
        return np.logical_or.reduce([value.known for _, value in self.values])

    @cached_property
    def right(self) -> Interval:
        """Return the values of the formula without a remark that most multi-GPU figures follow."""
        pairs = zip(self.values, self.meets, strict=True)
        votes = [(not note, int((meets & self.several).sum())) for (note, _), meets in pairs]
        right = self.values[votes.index(max(votes))][1]
        for _, value in self.values:
            right = right.or_else(value)
        return right

    @cached_property
    def wrong(self) -> np.ndarray:
        return np.asarray(self.printed.known & self.known & ~self.agrees)

    @property
    def open(self) -> np.ndarray:
        """Return where a figure is printed but no formula gives a value to compare."""
        return np.asarray(self.printed.known & ~self.known)

    def remarks(self) -> Iterator[tuple[str, np.ndarray]]:
        """Yield each formula's remark with the figures that no formula before it explains."""
        rest, pairs = self.agrees, zip(self.values, self.meets, strict=True)
        for (note, _), meets in sorted(pairs, key=lambda pair: bool(pair[0][0])):
            if note:
                yield note, meets & rest
            rest = rest & ~meets


def verdicts(cells: Cells) -> dict[str, Verdict]:
    """Return a verdict on each quantity; set `part`, `moving`, `K` and `rated` in `cells.names`.

    Without a stated number of parameters, K is taken from the model that most bandwidths fit.
    """
    names, each = cells.names, dict[str, Verdict]()

    def judge(quantity: str, **more: Interval) -> Verdict:
        values = [
            (note, cells.evaluate(formula, **more) + names["N"] * 0.0)
            for formula, note in formulas(quantity)
        ]
        return Verdict(quantity, names[quantity], values, cells.several)

    compute = names["compute"]
    names["part"] = lambda value: value
    each["compute"] = judge("compute")
    right = each["compute"]
    # A document goes on from the compute that it printed, where that is right.
    names["part"] = lambda value: value.hull(compute).where(
        right.agrees & compute.meets(value), value
    )
    for quantity in ("speedup", "efficiency", "rate", "communication"):
        each[quantity] = judge(quantity)
    comm = each["communication"]
    width = np.nanmax(comm.printed.high - comm.printed.low, initial=0.0) / 2 or 0.1
    rest = Interval(comm.right.ends + np.array([[-width], [width]]))
    names["moving"] = comm.printed.or_else(rest)
    chained = [names["moving"], *(value for note, value in comm.values if not note)]

    def bandwidth(size: Interval) -> Verdict:
        judged = [judge("bandwidth", moving=moving, K=size) for moving in chained]
        return replace(judged[0], values=[value for one in judged for value in one.values])

    options = [names["K"]]
    if not names["K"].known.any() and not names["bytes"].known.any():
        options += [of(4.0 * count) for count in FORMULAS["parameters"].values()]
    fits = [bandwidth(size) for size in options]
    shares = [int(one.agrees.sum()) for one in fits]
    best = shares.index(max(shares))
    if shares[best] <= max(1, fits[0].printed.known.sum() / 2):
        best = 0
    each["bandwidth"], names["K"] = fits[best], options[best]
    names["rated"] = each["bandwidth"].right
    each["utilization"] = judge("utilization")
    return each
