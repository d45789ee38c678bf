"""Evaluate formulas.yaml with intervals, and compare printed numbers with the results.

The interval of a printed number has all values that round or truncate to it. A cell is a
configuration of a study. formulas.yaml defines names such as N, b, T, T1, W and K.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, partial, partialmethod
from typing import Any

import numpy as np
import pandas as pd

from grader.study import FIGURES, FORMULAS, TITLES, VALUES, Study

_compiled = cache(partial(compile, filename="formula", mode="eval"))


@dataclass(frozen=True, eq=False)
class Interval:
    """One interval per configuration: `ends` [2, configurations], lowest and highest values.

    Unknown ends are NaN. Division by an interval that contains 0 gives -inf to inf.
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
        """Return a mask of configurations whose intervals overlap; False for unknown intervals."""
        fuzz = 1e-9 * np.maximum(np.abs(self.low), np.abs(other.low))
        return np.asarray((self.low <= other.high + fuzz) & (other.low <= self.high + fuzz))

    def near(self, other: Interval) -> np.ndarray:
        """Return a mask of configurations whose middle is within 2 % of the middle in `other`."""
        return np.asarray(np.abs(self.middle / other.middle - 1) <= 0.02)

    def where(self, choice: np.ndarray, other: Interval) -> Interval:
        """Return the intervals of `self` where `choice` is true, and of `other` elsewhere."""
        return Interval(np.where(choice, self.ends, other.ends))

    def or_else(self, other: Interval) -> Interval:
        return self.where(self.known, other)

    def hull(self, other: Interval) -> Interval:
        """Return the smallest intervals that contain both. Unknown intervals are ignored."""
        return Interval(np.stack([np.fmin(self.low, other.low), np.fmax(self.high, other.high)]))


def of(value: Any) -> Interval:
    """Return a number or an array as intervals of width 0. An `Interval` is returned unchanged."""
    return value if isinstance(value, Interval) else Interval(np.stack([np.atleast_1d(value)] * 2))


UNKNOWN = of(np.nan)


def printed(figures: Iterable[Any], units: float) -> Interval:
    """Return an interval for each `Figure`: ± `units` steps of its last digit, or NaN for None."""
    value, unit = np.array([one or (np.nan, 0.0) for one in figures]).reshape(-1, 2).T
    return Interval(np.stack([value - units * unit, value + units * unit]))


@dataclass(frozen=True)
class Cells:
    """The configurations of one strategy, as arrays. `names` maps names in formulas to values."""

    gpus: np.ndarray
    batch: np.ndarray
    images: int
    names: dict[str, Any]
    strategy: str = ""

    several = property(lambda self: self.gpus > 1)

    def evaluate(self, formula: str, time: str = "T", **more: Any) -> Any:
        """Return the value of a formula. `more` gives the values of further names.

        In the formula, `t` is the epoch time: with data loading if `time` is "T", without if "W".
        """
        names = self.names | {f"t{n}": self.names[time + n] for n in ("", "1")}
        names |= {f"u{n}": self.names[("W" if time == "T" else "T") + n] for n in ("", "1")}
        return eval(_compiled(formula), {"__builtins__": {}}, names | more)


def cells_of(study: Study, strategy: str, images: int) -> Cells:
    """Return the configurations of a strategy. `images` is the size of the training set.

    If a strategy lacks a one-GPU row that exactly one other strategy has, that row is copied.
    """
    single, chosen = study.rows["gpus"] == 1, study.rows["strategy"] == strategy
    sizes = study.rows.loc[chosen & single, "batch_size"]
    others = study.rows[single & ~chosen & ~study.rows["batch_size"].isin(sizes)]
    borrowed = others.drop_duplicates("batch_size", keep=False)
    blank = dict.fromkeys(["count", *FIGURES]) | {"status": "ok"}
    table = pd.concat([study.rows[chosen], borrowed.assign(**blank)])
    gpus, batch = (table[name].to_numpy(dtype=int) for name in ("gpus", "batch_size"))
    n, b = gpus.astype(float), batch.astype(float)
    # Documents truncate what they derive as often as they round it.
    names: dict[str, Any] = {x: printed(table[x], 1.0 if x in TITLES else 0.5) for x in VALUES}
    timed = names["epoch"].known.any()
    lab = FORMULAS["parameters"]
    low, high = study.parameters or (lab, lab)
    of_lab = low <= lab <= high and "imagenet" not in study.model and strategy != "own"
    fastest = images * FORMULAS["flop_of_image"] / FORMULAS["peak_flops"] / n
    numbers = {
        **{"N": n, "b": b, "one": 1.0, "images": images, "single_steps": np.ceil(images / b)},
        **{"steps": np.ceil(images / (n * b)), "full_steps": images // (n * b)},
        "fraction": np.where(table["percent"].notna(), np.nan, 1.0),
        "least_seconds": fastest if of_lab and timed else np.nan,
        "sent": 2 * (n - 1) / n,
        "copied": 2.0 if strategy == "dp" else np.nan,
    }
    names |= {name: of(number + n * 0.0) for name, number in numbers.items()}
    names["steps"] = names["iterations"].or_else(names["steps"])
    # By assumption in float32. Other strategies may send other bytes.
    counted = 4 if strategy in ("", "dp", "ddp") else np.nan
    names["K"] = Interval(np.array(study.parameters or [np.nan] * 2)[:, None] * counted)
    names["T"] = names["epoch"]
    if not timed:
        names |= {"T": names["images"] / names["rate"], "rate": UNKNOWN + n * 0.0}
    names["W"] = names["training"].or_else(names["T"] - names["loading"])
    names["failed"] = ~table["status"].isin(["ok", "diverged"]).to_numpy()
    names["once"] = (table["count"] == "1").to_numpy()
    names |= {"several": gpus > 1, **_of_others(gpus, batch)}
    size = n * b if study.global_batch else b
    names["T1"], names["W1"] = (names["at"](names[time], 1, size) for time in "TW")
    names["T1b"] = names["at"](names["T"], 1)
    return Cells(gpus, batch, images, names, strategy)


def _of_others(gpus: np.ndarray, batch: np.ndarray) -> dict[str, Any]:
    """Return the values of `at`, `mean` and `fewer`, names that formulas.yaml defines."""
    places = pd.MultiIndex.from_arrays([gpus, batch])

    def at(figure: Interval, number: Any, size: Any = batch) -> Interval:
        """Return `figure` of the configuration with `number` GPUs and batch `size`, or NaN."""
        wanted = np.broadcast_arrays(number, of(size).low, gpus)[:2]
        index = places.get_indexer(pd.MultiIndex.from_arrays(wanted))
        return Interval(np.where(index < 0, np.nan, figure.ends[..., index]))

    def mean(figure: Interval) -> Interval:
        single = figure.ends[:, (gpus == 1) & figure.known]
        return Interval(single.sum(axis=1)[:, None] / single.shape[1] + 0.0 * gpus)

    numbers = np.unique(gpus)
    fewer = np.append(0, numbers)[np.searchsorted(numbers, gpus)]
    return {"fewer": fewer, "mean": mean, "at": at}


@dataclass
class Verdict:
    """The printed numbers of one quantity, compared with its accepted formulas.

    `values`: for each formula, a remark (or None) and the computed intervals.
    `right`: the computed intervals of the formula that agrees with most printed numbers.
    `agrees`: mask of numbers that agree with any formula.
    `open`: mask of numbers that no formula can check, because its inputs are missing.
    `opened`: mask of numbers that disagree with all formulas, but may be right (`_open_parts`).
    `explained`: mask of numbers that follow from a known mistake of students.
    `remarks`: for each remark, mask of numbers that agree only with formulas of this remark.
    """

    quantity: str
    printed: Interval
    values: list[tuple[str | None, Interval]]
    several: np.ndarray

    def __post_init__(self) -> None:
        meets = [(note, self.printed.meets(value)) for note, value in self.values]
        self.agrees = np.logical_or.reduce([there for _, there in meets])
        known = np.logical_or.reduce([value.known for _, value in self.values])
        self.open = self.printed.known & ~known
        self.opened = self.explained = self.agrees & False
        votes = [(not note, int((there & self.several).sum())) for note, there in meets]
        self.right = self.values[votes.index(max(votes))][1]
        for _, value in self.values:
            self.right = self.right.or_else(value)
        rest, self.remarks = self.agrees, dict[str, np.ndarray]()
        for note, there in sorted(meets, key=lambda pair: bool(pair[0])):
            if note:
                self.remarks[note] = self.remarks.get(note, False) | (there & rest)
            rest = rest & ~there

    @property
    def wrong(self) -> np.ndarray:
        return self.printed.known & ~(self.open | self.agrees | self.opened | self.explained)


def times(text: str, order: str = "TW") -> str:
    """Return the times to try as `t` in formula `text`: `order`, or "T" if `text` has no `t`."""
    return order if re.search(r"\bt1?\b", text) else "T"


def verdicts(cells: Cells) -> dict[str, Verdict]:
    """Return the verdict on each quantity, by name. Add `part` and `moving` to `cells.names`."""
    names, each = cells.names, dict[str, Verdict]()
    names["part"] = lambda x: x.hull(names["compute"]).where(names["compute"].meets(x), x)
    for quantity, (_, _, order, formulas) in FORMULAS["quantities"].items():
        values = [
            (note, cells.evaluate(formula, time) + names["N"] * 0.0)
            for formula, note in formulas.items()
            for time in times(formula, order)
        ]
        each[quantity] = Verdict(quantity, names[quantity], values, cells.several)
        if quantity == "communication":
            names["moving"] = names[quantity].or_else(each[quantity].right)
    return each
