"""Evaluate the formulas of formulas.yaml as intervals, and judge printed figures by them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd

from grader.intervals import UNKNOWN, Interval, of, printed
from grader.study import FIGURES, FORMULAS, TIMES, Study
from scaling.registry.strategy import STRATEGIES

TITLE, QUESTION, ORDER = 0, 1, 2
"""Indexes in an entry of `quantities` in formulas.yaml; its formulas follow."""
BYTES_PER_PARAMETER = 4
"""Gradients are assumed to be float32, as in all studies of the course."""

_compiled = cache(partial(compile, filename="formula", mode="eval"))


@dataclass(frozen=True)
class Cells:
    """The cells (configurations) of one strategy; arrays have an element for each cell.

    `own` is False for the study's other times on one GPU, which come last. `names` maps names in
    formulas.yaml and slips.yaml to values.
    """

    gpus: np.ndarray
    batch: np.ndarray
    own: np.ndarray
    images: int
    names: dict[str, Any]
    strategy: str = ""

    def evaluate(self, formula: str, time: str = "T", **more: Any) -> Any:
        """Return the value of a formula, of which `t` is `time`, with `more` names than `names`."""
        pairs = {"t": time, "u": "W" if time == "T" else "T"}
        times = {
            f"{one}{n}": self.names[f"{of}{n}"] for one, of in pairs.items() for n in ("", "1")
        }
        return eval(_compiled(formula), {"__builtins__": {}}, self.names | times | more)

    @property
    def several(self) -> np.ndarray:
        return self.gpus > 1


def of_strategy(study: Study, strategy: str, images: int) -> Cells:
    """Return the cells of a study's strategy, and one-GPU times of others where it has none."""
    single = study.rows["gpus"] == 1
    chosen = study.rows["strategy"] == strategy
    sizes = study.rows.loc[chosen & single, "batch_size"]
    others = study.rows[single & ~chosen & ~study.rows["batch_size"].isin(sizes)]
    borrowed = others.drop_duplicates("batch_size", keep=False)
    table = pd.concat([study.rows[chosen], borrowed.assign(**dict.fromkeys(FIGURES))])
    own = (table["strategy"] == strategy).to_numpy()
    gpus, batch = (table[name].to_numpy(dtype=int) for name in ("gpus", "batch_size"))
    n, b = gpus.astype(float), batch.astype(float)
    # Documents truncate what they derive as often as they round it.
    units = dict.fromkeys(TIMES, 0.5) | dict.fromkeys(["rate", *FIGURES], 1.0)
    names: dict[str, Any] = {name: printed(table[name], size) for name, size in units.items()}
    timed = names["epoch"].known.any()
    # Of a strategy that nobody states a ring is likelier; of others no bytes are known.
    ring = STRATEGIES.find("ddp").busiest_bytes
    copied = strategy == "dp" and not study.description.ring
    sent = STRATEGIES.find("dp").busiest_bytes if copied else ring
    counted = 1.0 if strategy in ("", "dp", "ddp") else np.nan
    least = FORMULAS["gflop_of_image"] / FORMULAS["peak_tflops"] / 1e3
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
        "ring": np.array([ring(m, counted) for m in gpus]),
        "sent": np.array([sent(m, counted) for m in gpus]),
    }
    names |= {name: of(number + n * 0.0) for name, number in numbers.items()}
    names["steps"] = names["iterations"].or_else(names["steps"])
    names["K"] = Interval(np.array(study.parameters or [np.nan] * 2)[:, None] * BYTES_PER_PARAMETER)
    names["T"] = names["epoch"]
    if not timed:
        names |= {"T": names["images"] / names["rate"], "rate": UNKNOWN + n * 0.0}
    names["W"] = names["training"].or_else(names["T"] - names["loading"])
    names |= {"several": gpus > 1, "failed": own & ~table["status"].isin(["ok", "diverged"])}
    # Only the template asks how often a time was measured.
    asked = own & (study.template | table["count"].notna())
    names["once"] = asked & table["count"].isin(["1", None])
    names |= {name: names[name].to_numpy() for name in ("failed", "once")}
    names |= _of_others(gpus, batch)
    size = n * b if study.global_batch else b
    names["T1"], names["W1"] = (names["at"](names[time], 1, size) for time in "TW")
    names["T1b"] = names["at"](names["T"], 1)
    return Cells(gpus, batch, own, images, names, strategy)


def _of_others(gpus: np.ndarray, batch: np.ndarray) -> dict[str, Any]:
    """Return, by name, what formulas use to refer to values of other cells."""
    places = pd.MultiIndex.from_arrays([gpus, batch])

    def at(figure: Interval, number: Any, size: Any = batch) -> Interval:
        """Return each cell's value at a number of GPUs and a batch size; NaN if there is none."""
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
    """The printed figures of one quantity, and their values by each accepted formula.

    A figure is right if it overlaps any of `values`: pairs of a remark, for figures that only this
    formula explains, and intervals. `right` are the values of the formula that most figures follow.
    Where `opened`, one that is not right may be so after all; slips account for those `explained`.
    """

    quantity: str
    printed: Interval
    values: list[tuple[str, Interval]]
    several: np.ndarray

    def __post_init__(self) -> None:
        meets = [self.printed.meets(value) for _, value in self.values]
        known = np.logical_or.reduce([value.known for _, value in self.values])
        self.agrees = np.logical_or.reduce(meets)
        self.open = self.printed.known & ~known
        self.opened = self.explained = self.agrees & False
        self.meets = [(note, there) for (note, _), there in zip(self.values, meets, strict=True)]
        votes = [(not note, int((there & self.several).sum())) for note, there in self.meets]
        self.right = self.values[votes.index(max(votes))][1]
        for _, value in self.values:
            self.right = self.right.or_else(value)

    @property
    def wrong(self) -> np.ndarray:
        return self.printed.known & ~self.open & ~self.agrees & ~self.opened

    @property
    def unexplained(self) -> np.ndarray:
        return self.wrong & ~self.explained

    def remarks(self) -> dict[str, np.ndarray]:
        """Return by each formula's remark the figures that no formula before it explains."""
        rest, places = self.agrees, dict[str, np.ndarray]()
        for note, there in sorted(self.meets, key=lambda pair: bool(pair[0])):
            if note:
                places[note] = places.get(note, False) | (there & rest)
            rest = rest & ~there
        return places


def formulas(quantity: str) -> list[tuple[str, str]]:
    """Return the accepted formulas, each with the remark on figures that only it explains."""
    entries = FORMULAS["quantities"][quantity][ORDER + 1 :]
    return [tuple(one) if isinstance(one, list) else (one, "") for one in entries]


def times(text: str, order: str = "TW") -> str:
    """Return the times to put in the place of `t` in formulas: T with data loading, W without it.

    Formulas without `t` need only one evaluation, so the result is then "T", else `order`.
    """
    return order if re.search(r"\bt1?\b", text) else "T"


def verdicts(cells: Cells) -> dict[str, Verdict]:
    """Return a verdict on each quantity; set `part` and `moving` in `cells.names`."""
    names, each = cells.names, dict[str, Verdict]()

    def judge(quantity: str, *options: dict[str, Interval]) -> None:
        values = [
            (note, cells.evaluate(formula, time, **more) + names["N"] * 0.0)
            for more in options or [{}]
            for formula, note in formulas(quantity)
            for time in times(formula, FORMULAS["quantities"][quantity][ORDER])
        ]
        each[quantity] = Verdict(quantity, names[quantity], values, cells.several)

    def part(value: Interval) -> Interval:
        """Return the compute `value`, or the printed one where that is right."""
        right = each["compute"].agrees & names["compute"].meets(value)
        return value.hull(names["compute"]).where(right, value)

    names["part"] = part
    for quantity in ("compute", "speedup", "efficiency", "rate", "communication"):
        judge(quantity)
    one = each["communication"]
    width = np.nanmax(one.printed.high - one.printed.low, initial=0.0) / 2 or 0.1
    names["moving"] = one.printed.or_else(one.right + Interval(np.array([[-width], [width]])))
    options = [names["moving"], *(value for note, value in one.values if not note)]
    judge("bandwidth", *({"moving": value} for value in options))
    return each
