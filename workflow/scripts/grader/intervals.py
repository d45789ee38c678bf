"""Intervals of numbers, one for each cell: what a figure may have been before it was printed."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import partialmethod
from typing import Any

import numpy as np
import pandas as pd

FUZZ, NEARLY = 1e-9, 0.02
"""Relative differences that are float noise, and of a figure that is nearly right."""


@dataclass(frozen=True)
class Interval:
    """Hold the lowest and the highest value of each cell, NaN where a value is unknown.

    A formula in which each figure occurs once has exactly the interval of its results. Division by
    an interval around 0 keeps the results above 0.
    """

    low: np.ndarray
    high: np.ndarray

    def __iter__(self) -> Iterator[np.ndarray]:
        return iter((self.low, self.high))

    @np.errstate(all="ignore")
    def _ends(self, combine: Callable[[Any, Any], Any], other: Any) -> Interval:
        ends = [combine(own, end) for own in self for end in of(other)]
        return Interval(np.minimum.reduce(ends), np.maximum.reduce(ends))

    __add__ = partialmethod(_ends, operator.add)
    __sub__ = partialmethod(_ends, operator.sub)
    __mul__ = partialmethod(_ends, operator.mul)

    @np.errstate(all="ignore")
    def __truediv__(self, other: Any) -> Interval:
        low, high = of(other)
        return self * Interval(1 / high, np.where((low <= 0) & (high > 0), np.inf, 1 / low))

    @property
    def known(self) -> np.ndarray:
        return ~np.isnan(self.low)

    @property
    def middle(self) -> np.ndarray:
        return np.where(np.isinf(self.high), self.low, (self.low + self.high) / 2)

    def meets(self, other: Interval) -> np.ndarray:
        """Whether one value may be both; False where either is unknown."""
        fuzz = FUZZ * np.maximum(np.abs(self.low), np.abs(other.low))
        return np.asarray((self.low <= other.high + fuzz) & (other.low <= self.high + fuzz))

    def near(self, other: Interval) -> np.ndarray:
        """Where two figures differ by less than `NEARLY`."""
        difference = np.abs(self.middle - other.middle)
        return np.asarray(difference <= NEARLY * np.abs(other.middle))

    def take(self, index: np.ndarray) -> Interval:
        """The intervals of other cells by their index; unknown where it is below 0."""
        return Interval(*(np.where(index >= 0, end[..., index], np.nan) for end in self))

    def where(self, choice: np.ndarray, other: Interval) -> Interval:
        """These intervals where `choice` holds, those of `other` elsewhere."""
        ends = zip(self, other, strict=True)
        return Interval(*(np.where(choice, own, end) for own, end in ends))

    def or_derived(self, other: Interval) -> Interval:
        """`other` where these are unknown, rounded as the figures here, or else to one decimal."""
        around = np.nanmax(self.high - self.low, initial=0.0) / 2 or 0.1
        return self.where(self.known, Interval(other.low - around, other.high + around))

    def hull(self, other: Interval) -> Interval:
        """The intervals that hold both; an unknown one adds nothing."""
        return Interval(np.fmin(self.low, other.low), np.fmax(self.high, other.high))


def stacked(each: list[Interval]) -> Interval:
    """Several intervals for each cell, along a new axis before that of the cells."""
    ends = zip(*each, strict=True)
    return Interval(*(np.stack(np.broadcast_arrays(*end), axis=-2) for end in ends))


def common(ratios: Interval) -> Interval:
    """What more than half of the ratios, and at least two, may all be; unknown if there is none."""
    usable = ratios.known & np.isfinite(ratios.high) & (ratios.high > 0)
    lows, highs = np.sort(ratios.low[usable]), np.sort(ratios.high[usable])
    if len(lows) < 2:
        return of(np.nan)
    counts = np.arange(1, len(lows) + 1) - np.searchsorted(highs, lows * (1 - 1e-12))
    best = lows[int(counts.argmax())]
    if counts.max() <= max(1, len(lows) / 2):
        return of(np.nan)
    there = usable & (ratios.low <= best) & (ratios.high >= best)
    return Interval(ratios.low[there].max(), ratios.high[there].min())


def of(value: Any) -> Interval:
    """A number or an array as intervals without width."""
    return value if isinstance(value, Interval) else Interval(np.asarray(value), np.asarray(value))


def printed(figures: Iterable[Any], units: float = 0.5) -> Interval:
    """What figures may have been before they were rounded, `units` of the last digit around.

    Half a unit is rounding, a whole one truncation too. Unknown for None.
    """
    known = [Decimal("nan") if pd.isna(figure) else figure for figure in figures]
    value = np.array(known, dtype=float)
    digits = [0 if one.is_nan() else int(one.as_tuple().exponent) for one in known]
    around = units * 10.0 ** np.array(digits, dtype=float)
    return Interval(value - around, value + around)
