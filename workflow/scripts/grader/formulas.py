"""Evaluate the formulas of formulas.yaml as intervals, and judge printed figures by them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from grader.intervals import UNKNOWN, Interval, of, printed
from grader.study import FIGURES, TIMES, Study
from scaling.config.stored import read_config
from scaling.registry.strategy import STRATEGIES

FORMULAS = read_config(Path(__file__).with_name("formulas.yaml"))
TITLE, QUESTION = 0, 1
"""Indexes in an entry of `quantities` in formulas.yaml; its formulas follow."""
BYTES_PER_PARAMETER = 4
"""Gradients are assumed to be float32, as in all studies of the course."""
MOST_OTHERS = 8

_compiled = cache(partial(compile, filename="formula", mode="eval"))


@dataclass(frozen=True)
class Cells:
    """The cells (configurations) of one strategy; arrays have an element for each cell.

    The first `count` cells are the strategy's, the rest are the study's other times on one GPU.
    `names` maps names in formulas.yaml and slips.yaml to values. `others` are the names of
    strategies and studies whose times `alone(G)` and `beside(G)` return.
    """

    gpus: np.ndarray
    batch: np.ndarray
    count: int
    images: int
    others: list[str]
    names: dict[str, Any]
    strategy: str = ""

    def evaluate(self, formula: str, **more: Any) -> Any:
        """Return the value of a formula, with `more` names in addition to `names`."""
        return eval(_compiled(formula), {"__builtins__": {}}, self.names | more)

    @property
    def several(self) -> np.ndarray:
        return self.gpus > 1


def of_strategy(study: Study, strategy: str, every: list[Study], images: int) -> Cells:
    """Return the cells of a study's strategy; slips may use the times of `every` study as well."""
    own = study.rows["strategy"] == strategy
    chosen, rest = study.rows[own], study.rows[~own]
    sweep = [{"gpus": 1, "batch_size": size, "epoch": one} for size, one in study.sweep.items()]
    singles = rest[rest["gpus"] == 1].drop_duplicates("batch_size", keep=False)
    singles = pd.concat([singles, pd.DataFrame(sweep, columns=study.rows.columns)])
    present = chosen.loc[chosen["gpus"] == 1, "batch_size"]
    singles = singles[~singles["batch_size"].isin(present)].drop_duplicates("batch_size")
    table = pd.concat([chosen, singles]).astype(object)
    table = table.where(table.notna(), None)
    gpus, batch = (table[name].to_numpy(dtype=int) for name in ("gpus", "batch_size"))
    n, b = gpus.astype(float), batch.astype(float)
    # Documents truncate what they derive as often as they round it.
    units = dict.fromkeys(TIMES, 0.5) | dict.fromkeys(["rate", *FIGURES], 1.0)
    names: dict[str, Any] = {name: printed(table[name].tolist(), x) for name, x in units.items()}
    for name in FIGURES:
        names[name].ends[:, len(chosen) :] = np.nan
    names["T"], names["own_row"] = names["epoch"], np.arange(len(n)) < len(chosen)
    timed = names["T"].known.any()
    if not timed and names["rate"].known.any():
        names |= {"T": of(float(images)) / names["rate"], "rate": UNKNOWN + n * 0.0}
    without = (names["T"] - names["loading"]).where(names["loading"].known, UNKNOWN)
    names |= {"W": names["training"].or_else(without), "several": gpus > 1}
    names["K"] = Interval(np.array(study.parameters or [np.nan] * 2)[:, None] * BYTES_PER_PARAMETER)
    least = FORMULAS["gflop_of_image"] / FORMULAS["peak_tflops"] / 1e3
    # Of a strategy that nobody states a ring is likelier; of others no bytes are known.
    counted = 1.0 if strategy in ("", "dp", "ddp") else np.nan
    ring = STRATEGIES.find("ddp").busiest_bytes
    is_ring = strategy != "dp" or study.description.ring
    sent = ring if is_ring else STRATEGIES.find("dp").busiest_bytes
    peak = study.description.peak
    each = peak if isinstance(peak, dict) else dict.fromkeys(gpus.tolist(), peak)
    numbers: dict[str, Any] = {
        "N": n,
        "b": b,
        "one": 1.0,
        "images": images,
        "full_steps": images // (n * b),
        "parts_steps": images / (n * b),
        "single_steps": np.ceil(images / b),
        "steps": np.ceil(images / (n * b)),
        "least_seconds": images * least / n if study.of_lab and timed else np.nan,
        "peak": np.array([each.get(number) or np.nan for number in gpus.tolist()]),
        "ring": np.array([ring(m, counted) for m in gpus]),
        "sent": np.array([sent(m, counted) for m in gpus]),
    }
    # Beside a column of peaks a share may be a fraction.
    share = names["peak"] * np.where(names["utilization"].high > 1.5, 1.0, 100.0)
    stated = {"steps": names["iterations"], "peak": share}
    names |= {name: of(number + n * 0.0) for name, number in numbers.items()}
    names |= {name: value.or_else(names[name]) for name, value in stated.items()}
    names["failed"] = ~table["status"].isin(["ok", "diverged"]).to_numpy() & names["own_row"]
    # Only the template asks how often a time was measured.
    asked = study.template | table["count"].notna().to_numpy()
    names["once"] = table["count"].isin(["1", None]).to_numpy() & asked & names["own_row"]
    names |= _of_others(gpus, batch)
    foreign = dict[str, dict[Any, Any]]()
    for other in every:
        for kind, rows in other.rows.groupby("strategy"):
            if (other.name, kind) != (study.name, strategy) and len(foreign) < MOST_OTHERS:
                label = str(kind if other is study else other.name).replace("'", "")
                foreign[label] = rows.set_index(["gpus", "batch_size"])["epoch"].to_dict()

    def beside(times: Any, number: Any = gpus) -> Interval:
        return printed(
            [times.get(cell) for cell in zip(number + 0 * gpus, batch, strict=True)], 0.5
        )

    names["beside"] = lambda name: beside(foreign[name])
    names["alone"] = lambda name: beside(foreign[name], 1)
    names["again"] = beside({(1, size): one for size, one in study.sweep.items()})
    size = n * b if study.global_batch else b
    names["T1"], names["W1"] = (names["single"](names[time], size) for time in "TW")
    names["T1b"] = names["single"](names["T"], b)
    return Cells(gpus, batch, len(chosen), images, [*foreign], names, strategy)


def _of_others(gpus: np.ndarray, batch: np.ndarray) -> dict[str, Any]:
    """Return, by name, what formulas use to refer to values of other cells."""
    places = pd.MultiIndex.from_arrays([gpus, batch])

    def take(figure: Interval, *cell: Any) -> Interval:
        """Return the values of each cell by number of GPUs and batch size; NaN if there is none."""
        wanted = pd.MultiIndex.from_arrays(np.broadcast_arrays(*cell, gpus)[:2])
        index = places.get_indexer(wanted)
        return Interval(np.where(index < 0, np.nan, figure.ends[..., index]))

    def mean(figure: Interval) -> Interval:
        single = Interval(np.where(gpus == 1, figure.ends, np.nan))
        ends = np.where(single.known, single.ends, 0.0).sum(1) / single.known.sum()
        return Interval(np.repeat(ends[:, None], len(gpus), axis=1))

    numbers = np.unique(gpus)
    return {
        "fewer": np.append(0, numbers)[np.searchsorted(numbers, gpus)],
        "mean": mean,
        "at": lambda figure, number: take(figure, number, batch),
        "single": lambda figure, size: take(figure, 1, of(size).low),
    }


@dataclass
class Verdict:
    """The printed figures of one quantity, and their values by each accepted formula.

    A figure is right if it overlaps any of `values`: pairs of a remark, for figures that only this
    formula explains, and intervals. `right` are the values of the formula that most figures follow.
    """

    quantity: str
    printed: Interval
    values: list[tuple[str, Interval]]
    several: np.ndarray

    def __post_init__(self) -> None:
        meets = [self.printed.meets(value) for _, value in self.values]
        known = np.logical_or.reduce([value.known for _, value in self.values])
        self.agrees = np.logical_or.reduce(meets)
        self.wrong = self.printed.known & known & ~self.agrees
        self.open = self.printed.known & ~known
        self.meets = [(note, there) for (note, _), there in zip(self.values, meets, strict=True)]
        votes = [(not note, int((there & self.several).sum())) for note, there in self.meets]
        self.right = self.values[votes.index(max(votes))][1]
        for _, value in self.values:
            self.right = self.right.or_else(value)

    def remarks(self) -> Iterator[tuple[str, np.ndarray]]:
        """Yield each formula's remark with the figures that no formula before it explains."""
        rest = self.agrees
        for note, there in sorted(self.meets, key=lambda pair: bool(pair[0])):
            if note:
                yield note, there & rest
            rest = rest & ~there


def formulas(quantity: str) -> list[tuple[str, str]]:
    """Return the accepted formulas, each with the remark on figures that only it explains."""
    entries = FORMULAS["quantities"][quantity][QUESTION + 1 :]
    return [tuple(one) if isinstance(one, list) else (one, "") for one in entries]


def verdicts(cells: Cells) -> dict[str, Verdict]:
    """Return a verdict on each quantity; set `part`, `moving`, `K` and `rated` in `cells.names`.

    Without a stated number of parameters, K is taken from the model that most bandwidths fit.
    """
    names, each = cells.names, dict[str, Verdict]()

    def judge(quantity: str, **more: Interval) -> Verdict:
        every = [
            (note, cells.evaluate(formula, **more) + names["N"] * 0.0)
            for formula, note in formulas(quantity)
        ]
        return Verdict(quantity, names[quantity], every, cells.several)

    def part(value: Interval) -> Interval:
        """Return the compute `value`, or the printed one where that is right."""
        right = each["compute"].agrees & names["compute"].meets(value)
        return value.hull(names["compute"]).where(right, value)

    names["part"] = part
    for quantity in ("compute", "speedup", "efficiency", "rate", "communication"):
        each[quantity] = judge(quantity)
    comm = each["communication"]
    width = np.nanmax(comm.printed.high - comm.printed.low, initial=0.0) / 2 or 0.1
    rest = Interval(comm.right.ends + np.array([[-width], [width]]))
    names["moving"] = comm.printed.or_else(rest)
    chained = [names["moving"], *(value for note, value in comm.values if not note)]
    options = [names["K"]]
    if not names["K"].known.any() and not names["bytes"].known.any():
        options += [of(4.0 * count) for count in FORMULAS["parameters"].values()]
    fits = list[Verdict]()
    for size in options:
        judged = [judge("bandwidth", moving=moving, K=size) for moving in chained]
        fits.append(replace(judged[0], values=[value for one in judged for value in one.values]))
    best = max(range(len(fits)), key=lambda i: fits[i].agrees.sum())
    if fits[best].agrees.sum() <= max(1, fits[0].printed.known.sum() / 2):
        best = 0
    each["bandwidth"], names["K"] = fits[best], options[best]
    names["rated"] = each["bandwidth"].right
    each["utilization"] = judge("utilization")
    return each
