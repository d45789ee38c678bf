"""What a document prints of one strategy: times and figures as intervals, a place for each cell."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache, cached_property, partial, partialmethod
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from grader.study import BYTES_PER_PARAMETER, PRINTED, TIMES, PublishedStudy
from scaling.registry.strategy import STRATEGIES

FORMULAS = yaml.safe_load(Path(__file__).with_name("formulas.yaml").read_text(encoding="utf-8"))
PARAMETERS: dict[str, int] = FORMULAS["parameters"]
DEFINITIONS: dict[str, dict[str, str]] = FORMULAS["definitions"]
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
        return self[..., index].where(index >= 0, UNKNOWN)

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


UNKNOWN = of(np.nan)
_compiled = cache(partial(compile, filename="formula", mode="eval"))


@dataclass(frozen=True)
class Cells:
    """Hold one strategy's cells: N, b, the times and figures that are printed, by their columns.

    The first `own` cells are the strategy's rows, the others times on one GPU from elsewhere in the
    study. `constants` are the names in formulas.yaml that depend on no column; `gpu` says of which
    peak its `floor` is.
    """

    strategy: str
    gpus: np.ndarray
    batch: np.ndarray
    own: int
    images: int
    gpu: str
    constants: dict[str, Any]
    columns: dict[str, Interval]

    @cached_property
    def names(self) -> dict[str, Any]:
        """What the names in formulas.yaml stand for."""
        found: dict[str, Any] = self.constants | self.columns
        n, first = found["N"], found["first"]
        whole, without, lowest, highest = (self.columns[name] for name in TIMES)
        compute, moving = (self.columns[f"{name}_seconds"] for name in ("compute", "communication"))
        # One GPU computes all the time that it does not load.
        single = without.where(without.known, compute).take(first)
        found |= {"T": whole, "T1": whole.take(first), "W": without, "W1": single}
        found |= {"lowest": lowest, "highest": highest}
        found["range"] = Interval(lowest.low, highest.high)
        parts = [one.where(one.known, n * 0.0) for one in (compute, moving)]
        found["parts"] = parts[0] + parts[1]
        alone = ~(found["T1"].known | single.known)

        def share(right: Interval) -> Interval:
            """A document goes on from the compute that it printed, where that is right."""
            return right.hull(compute).where(compute.meets(right) | alone, right)

        shares = {time: found[f"{time}1"] / n for time in "TW"}
        rests = {time: found[time] - share(right) for time, right in shares.items()}
        votes = {t: moving.meets(rests[t]).sum() + compute.meets(shares[t]).sum() for t in "TW"}
        # Where both explain as much it may be either.
        best = [rests[time] for time, vote in votes.items() if vote == max(votes.values())]
        rest = best[0].hull(best[-1])
        return found | {"share_of": share, "rest": rest, "moving": moving.or_derived(rest)}

    def evaluate(self, formula: str, **more: Any) -> Any:
        """The value of a formula of formulas.yaml or mistakes.yaml, with `more` names."""
        return eval(_compiled(formula), {"__builtins__": {}}, self.names | more)

    def with_values(self, columns: dict[str, Interval]) -> Cells:
        """These cells with other columns."""
        return replace(self, columns=self.columns | columns)


def _peak(study: PublishedStudy) -> tuple[str, float]:
    """The GPU that a study names and the TFLOP/s of its peak."""
    for name, peak in sorted(FORMULAS["peaks"].items(), key=lambda one: -len(one[0])):
        # A study called t4 or a10 may be that of a group.
        text = f"{study.name if len(name) > 3 else ''} {study.description.hardware}".lower()
        words = name.lower().replace(" ", "[ _-]?")
        if re.search(rf"(?<![a-wyz0-9]){words}(?![a-z0-9])", text):
            return name, peak
    return "H100", FORMULAS["peaks"]["H100"]


def of_strategy(study: PublishedStudy, strategy: str, train_images: int) -> Cells:
    """The cells of a study's `strategy`, for a training set of `train_images`."""
    rows, cell = study.rows, ["gpus", "batch_size"]
    own, others = rows[rows["strategy"] == strategy], rows[rows["strategy"] != strategy]
    singles = pd.concat([others, study.sweep]).query("gpus == 1")
    every = pd.concat([own, singles]).drop_duplicates(cell)
    columns = {name: printed(every[name]) for name in TIMES}
    for name, table in (("again", study.sweep), ("X", others)):
        there = every[cell].merge(table.drop_duplicates(cell), "left", cell)
        columns[name] = printed(there[TIMES[0]])
    for name, column in PRINTED.items():
        # Documents truncate what they derive as often as they round it.
        columns[name] = printed(every[column], units=1)
        columns[name].low[len(own) :] = columns[name].high[len(own) :] = np.nan
    columns |= {"K": of(BYTES_PER_PARAMETER * (study.parameters or np.nan)), "share": UNKNOWN}
    gpu, peak = _peak(study)
    # A network that nobody describes is the lab's.
    gflop = FORMULAS["gflop_of_image"].get(study.parameters or PARAMETERS["resnet18-cifar"], np.nan)
    gpus, batch = (every[name].to_numpy(int) for name in cell)
    n, b = gpus.astype(float), batch.astype(float)
    arrays = {
        **{"N": n, "b": b, "count": every["count"].to_numpy(float), "one": np.ones_like(n)},
        "images": np.full_like(n, train_images),
        "floor": train_images * gflop / peak / 1e3 / n,
        **{"steps": np.ceil(train_images / (n * b)), "full_steps": train_images // (n * b)},
        **{"single_steps": np.ceil(train_images / b), "full_single": train_images // b},
        "least_b": np.full_like(n, min(batch[gpus == 1], default=0)),
        "unknown": np.full_like(n, np.nan),
    }
    # Of a strategy that nobody states either may be meant.
    for name, each in (("own", "ddp" if strategy == "ddp" else "dp"), ("ring", "ddp")):
        of_bytes = STRATEGIES.find(each).busiest_bytes
        arrays[name] = np.array([of_bytes(number, 1.0) for number in gpus.tolist()])
    constants = {
        **{name: of(array) for name, array in arrays.items()},
        **{"own_row": np.arange(len(n)) < len(own), "several": gpus > 1},
        # What is known, where several are and `holds` is true of such a share of them.
        "every": lambda holds, known, share=1.0: (
            known & bool(known.sum() > 1 and holds[known].mean() >= share)
        ),
        "around": Interval(np.array(1 - NEARLY), np.array(1 + NEARLY)),
        "steps_of": lambda images: of(np.ceil(images / (n * b))),
        "whole": lambda figure: of(np.round(figure.middle)),
        "log2": lambda figure: Interval(*map(np.log2, figure)),
        **_of_others(gpus, batch),
    }
    said = f"{gpu}, {peak:g} TFLOP/s; {gflop:g} GFLOP an image"
    return Cells(strategy, gpus, batch, len(own), train_images, said, constants, columns)


def _of_others(gpus: np.ndarray, batch: np.ndarray) -> dict[str, Any]:
    """The names in formulas.yaml by which a cell has figures of other cells."""
    pairs = zip(gpus.tolist(), batch.tolist(), strict=True)
    places = {pair: i for i, pair in enumerate(pairs)}

    def find(*cell: np.ndarray | int) -> np.ndarray:
        """The index of the cell on so many GPUs, of such a batch size, or -1."""
        wanted = (each.tolist() for each in np.broadcast_arrays(*cell, gpus)[:2])
        return np.array([places.get(pair, -1) for pair in zip(*wanted, strict=True)], dtype=int)

    numbers = np.unique(gpus)
    fewer = np.append(0, numbers)[np.searchsorted(numbers, gpus)]
    second = np.append(numbers[numbers > 1], [0, 0])[1]
    return {
        **{"fewer": fewer, "neighbour": np.where(fewer > 1, fewer, second)},
        "first": find(1, batch),
        "at": lambda figure, number: figure.take(find(number, batch)),
        "beside": lambda figure, b: figure.take(np.where(batch == b, -1, find(gpus, b))),
        "single": lambda figure, b: figure.take(find(1, of(b).low)),
    }
