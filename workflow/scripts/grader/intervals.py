"""Arrays of intervals, one per cell: the values from which a printed figure may be rounded."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partialmethod
from typing import Any

import numpy as np

FUZZ, NEARLY = 1e-9, 0.02
"""Relative differences: up to FUZZ is float noise, up to NEARLY makes a figure nearly right."""


@dataclass(frozen=True, eq=False)
class Interval:
    """The lowest and the highest value of each cell, [2, cells]; NaN where a value is unknown.

    Division by an interval that contains 0 gives -inf to inf.
    """

    ends: np.ndarray

    low = property(lambda self: self.ends[0])
    high = property(lambda self: self.ends[1])
    known = property(lambda self: ~np.isnan(self.low))

    def _ends(self, combine: Callable[[Any, Any], Any], other: Any) -> Interval:
        ends = [combine(one, end) for one in self.ends for end in of(other).ends]
        return Interval(np.stack([np.minimum.reduce(ends), np.maximum.reduce(ends)]))

    __add__ = partialmethod(_ends, operator.add)
    __sub__ = partialmethod(_ends, operator.sub)
    __mul__ = partialmethod(_ends, operator.mul)

    def __truediv__(self, other: Any) -> Interval:
        low, high = of(other).ends
        around = self.known & (low <= 0) & (high >= 0)
        ends = (self * Interval(np.stack([1 / high, 1 / low]))).ends
        return Interval(np.where(around, [[-np.inf], [np.inf]], ends))

    @property
    def middle(self) -> np.ndarray:
        middle = np.where(np.isinf(self.high), self.low, self.ends.mean(0))
        return np.where(np.isinf(middle), np.nan, middle)

    def meets(self, other: Interval) -> np.ndarray:
        """Return where the intervals overlap; False where either is unknown."""
        fuzz = FUZZ * np.maximum(np.abs(self.low), np.abs(other.low))
        return np.asarray((self.low <= other.high + fuzz) & (other.low <= self.high + fuzz))

    def near(self, other: Interval) -> np.ndarray:
        """Return where the middles differ by at most `NEARLY`, relative to `other`."""
        return np.asarray(np.abs(self.middle / other.middle - 1) <= NEARLY)

    def where(self, choice: np.ndarray, other: Interval) -> Interval:
        """Return these intervals where `choice` is true, those of `other` elsewhere."""
        return Interval(np.where(choice, self.ends, other.ends))

    def or_else(self, other: Interval) -> Interval:
        return self.where(self.known, other)

    def hull(self, other: Interval) -> Interval:
        """Return the smallest intervals that contain both; an unknown interval adds nothing."""
        return Interval(np.stack([np.fmin(self.low, other.low), np.fmax(self.high, other.high)]))


def of(value: Any) -> Interval:
    """Return a number or an array as intervals of width 0, and intervals unchanged."""
    return value if isinstance(value, Interval) else Interval(np.stack([np.atleast_1d(value)] * 2))


UNKNOWN = of(np.nan)


def printed(figures: Iterable[Any], units: float) -> Interval:
    """Return intervals of ± `units` units of the last digit around figures; unknown for None."""
    value, unit = np.array([one or (np.nan, 0.0) for one in figures]).reshape(-1, 2).T
    return Interval(np.stack([value - units * unit, value + units * unit]))
