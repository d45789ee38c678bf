"""Figures as intervals: what they may have been before they were rounded, a place for each cell."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partialmethod
from typing import Any

import numpy as np

FUZZ, NEARLY = 1e-9, 0.02
"""Relative differences that are float noise, and of a figure that is nearly right."""


@dataclass(frozen=True)
class Interval:
    """The lowest and the highest value of each cell, NaN where a value is unknown.

    Divided by an interval around 0 it may be anything.
    """

    low: np.ndarray
    high: np.ndarray

    def __iter__(self) -> Iterator[np.ndarray]:
        return iter((self.low, self.high))

    def __getitem__(self, place: Any) -> Interval:
        return Interval(*(end[place] for end in self))

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
        around = (low < 0) & (high > 0)
        ends = np.where(around, -np.inf, 1 / high), np.where(around | (low == 0), np.inf, 1 / low)
        return (self * Interval(*ends)).where(~(around & self.known), ANY)

    @property
    def known(self) -> np.ndarray:
        return ~np.isnan(self.low)

    @property
    def middle(self) -> np.ndarray:
        middle = np.where(np.isinf(self.high), self.low, (self.low + self.high) / 2)
        return np.where(np.isinf(middle), np.nan, middle)

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
        return self[..., index].where(index >= 0, UNKNOWN)

    def where(self, choice: np.ndarray, other: Interval) -> Interval:
        """These intervals where `choice` holds, those of `other` elsewhere."""
        ends = zip(self, other, strict=True)
        return Interval(*(np.where(choice, own, end) for own, end in ends))

    def or_else(self, other: Interval) -> Interval:
        return self.where(self.known, other)

    def hull(self, other: Interval) -> Interval:
        """The intervals that hold both; an unknown one adds nothing."""
        return Interval(np.fmin(self.low, other.low), np.fmax(self.high, other.high))

    def cut(self) -> Interval:
        """The intervals with 0 in the place of what is below."""
        return Interval(np.maximum(self.low, 0.0), np.maximum(self.high, 0.0))


def of(value: Any) -> Interval:
    """A number or an array as intervals without width."""
    return value if isinstance(value, Interval) else Interval(np.asarray(value), np.asarray(value))


UNKNOWN, ANY = of(np.nan), Interval(np.array(-np.inf), np.array(np.inf))


def common(ratios: Interval) -> Interval:
    """What more than half of the ratios, and at least two, may all be; unknown if there is none."""
    usable = ratios.known & np.isfinite(ratios.high) & (ratios.high > 0)
    lows, highs = np.sort(ratios.low[usable]), np.sort(ratios.high[usable])
    if len(lows) < 2:
        return UNKNOWN
    counts = np.arange(1, len(lows) + 1) - np.searchsorted(highs, lows * (1 - 1e-12))
    best = lows[int(counts.argmax())]
    if counts.max() <= max(1, len(lows) / 2):
        return UNKNOWN
    there = usable & (ratios.low <= best) & (ratios.high >= best)
    return Interval(ratios.low[there].max(), ratios.high[there].min())


def printed(figures: list[Any], units: float) -> Interval:
    """What figures may have been before they were rounded, `units` of the last digit around."""
    pairs = [one if one is not None else (np.nan, 0.0) for one in figures]
    value, unit = np.array(pairs, dtype=float).reshape(-1, 2).T
    return Interval(value - units * unit, value + units * unit)
