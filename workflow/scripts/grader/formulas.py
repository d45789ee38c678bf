"""Evaluate the formulas of formulas.yaml as intervals over the cells of a strategy."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from grader.intervals import UNKNOWN, Interval, of, printed
from grader.study import FIGURES, TIMES, Study
from scaling.registry.strategy import STRATEGIES

FORMULAS = yaml.safe_load(Path(__file__).with_name("formulas.yaml").read_text(encoding="utf-8"))
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

    strategy: str
    gpus: np.ndarray
    batch: np.ndarray
    count: int
    images: int
    others: list[str]
    names: dict[str, Any]

    def evaluate(self, formula: str, **more: Any) -> Any:
        """Return the value of a formula, with `more` names in addition to `names`."""
        return eval(_compiled(formula), {"__builtins__": {}}, self.names | more)

    @property
    def several(self) -> np.ndarray:
        return self.gpus > 1


def of_strategy(study: Study, strategy: str, every: list[Study], images: int) -> Cells:
    """Return the cells of a study's strategy; slips may use the times of `every` study as well."""
    chosen = study.rows[study.rows["strategy"] == strategy]
    singles = study.rows[(study.rows["strategy"] != strategy) & (study.rows["gpus"] == 1)]
    singles = singles.drop_duplicates("batch_size", keep=False)
    sweep = [{"gpus": 1, "batch_size": size, "epoch": one} for size, one in study.sweep.items()]
    extra = pd.DataFrame(sweep, columns=study.rows.columns)
    singles = pd.concat([singles, extra]).drop_duplicates("batch_size")
    present = chosen.loc[chosen["gpus"] == 1, "batch_size"]
    table = pd.concat([chosen, singles[~singles["batch_size"].isin(present)]])
    table = table.astype(object).where(table.notna(), None)
    gpus, batch = (table[name].to_numpy(dtype=int) for name in ("gpus", "batch_size"))
    n, b = gpus.astype(float), batch.astype(float)
    columns = {name: printed(table[name].tolist(), 0.5) for name in TIMES}
    # Documents truncate what they derive as often as they round it.
    columns |= {name: printed(table[name].tolist(), 1.0) for name in ["rate", *FIGURES]}
    for name in FIGURES:
        columns[name].ends[:, len(chosen) :] = np.nan
    again = {(1, size): one for size, one in study.sweep.items()}
    columns["again"] = printed([again.get(cell) for cell in zip(gpus, batch, strict=True)], 0.5)
    epoch, training, loading = (columns[name] for name in ("epoch", "training", "loading"))
    timed = epoch.known.any()
    if not timed and columns["rate"].known.any():
        epoch = of(float(images)) / columns["rate"]
        columns["rate"] = UNKNOWN + n * 0.0
    least = FORMULAS["gflop_of_image"] / FORMULAS["peak_tflops"] / 1e3
    steps = columns["iterations"].or_else(of(np.ceil(images / (n * b))))
    names: dict[str, Any] = {**columns, "T": epoch, "steps": steps, "several": gpus > 1}
    names["own_row"] = np.arange(len(n)) < len(chosen)
    names["W"] = training.or_else((epoch - loading).where(loading.known, UNKNOWN))
    names["K"] = Interval(np.array(study.parameters or [np.nan] * 2)[:, None] * BYTES_PER_PARAMETER)
    numbers: dict[str, Any] = {"N": n, "b": b, "one": 1.0, "images": images}
    numbers |= {"full_steps": images // (n * b), "parts_steps": images / (n * b)}
    numbers["single_steps"] = np.ceil(images / b)
    numbers["least_seconds"] = images * least / n if study.of_lab and timed else np.nan
    peak = study.description.peak
    each = peak if isinstance(peak, dict) else dict.fromkeys(gpus.tolist(), peak)
    numbers["peak"] = np.array([each.get(number) or np.nan for number in gpus.tolist()])
    # Of a strategy that nobody states a ring is likelier; of others no bytes are known.
    ring = STRATEGIES.find("ddp").busiest_bytes
    sent = (
        STRATEGIES.find(strategy).busiest_bytes
        if strategy == "dp" and not study.description.ring
        else ring
    )
    numbers["ring"], numbers["sent"] = (
        np.array([bytes_(m, 1.0) if strategy in ("", "dp", "ddp") else np.nan for m in gpus])
        for bytes_ in (ring, sent)
    )
    names |= {name: of(number + n * 0.0) for name, number in numbers.items()}
    # Beside a column of peaks a share may be a fraction.
    scale = np.where(columns["utilization"].high > 1.5, 1.0, 100.0)
    names["peak"] = (columns["peak"] * scale).or_else(names["peak"])
    names |= _of_others(gpus, batch)
    foreign = _foreign(study, strategy, every)

    def timed_by(name: str, cells: Any) -> Interval:
        return printed([foreign[name].get(cell) for cell in cells], 0.5)

    names["alone"] = lambda name: timed_by(name, [(1, size) for size in batch])
    names["beside"] = lambda name: timed_by(name, zip(gpus, batch, strict=True))
    size = n * b if study.global_batch else b
    names["T1"], names["W1"] = (names["single"](names[time], size) for time in "TW")
    names["T1b"] = names["single"](names["T"], b)
    return Cells(strategy, gpus, batch, len(chosen), images, [*foreign], names)


def _foreign(study: Study, strategy: str, every: list[Study]) -> dict[str, dict[Any, Any]]:
    """Return epoch times by (N, b) of other strategies and studies of the file, by name."""
    times = dict[str, dict[Any, Any]]()
    for other in every:
        for name, rows in other.rows.groupby("strategy"):
            if (other.name, name) != (study.name, strategy) and len(times) < MOST_OTHERS:
                cells = zip(rows["gpus"], rows["batch_size"], rows["epoch"], strict=True)
                label = str(name) if other is study else other.name
                times[label.replace("'", "")] = {(n, b): one for n, b, one in cells}
    return times


def _of_others(gpus: np.ndarray, batch: np.ndarray) -> dict[str, Any]:
    """Return, by name, what formulas use to refer to values of other cells."""
    places = {pair: i for i, pair in enumerate(zip(gpus.tolist(), batch.tolist(), strict=True))}

    def find(*cell: Any) -> np.ndarray:
        """Return the index of each cell by number of GPUs and batch size, -1 if there is none."""
        wanted = (each.tolist() for each in np.broadcast_arrays(*cell, gpus)[:2])
        return np.array([places.get(pair, -1) for pair in zip(*wanted, strict=True)], dtype=int)

    def mean(figure: Interval) -> Interval:
        there = (gpus == 1) & figure.known
        ends = figure.ends[:, there].mean(1) if there.any() else np.full(2, np.nan)
        return Interval(np.repeat(ends[:, None], len(gpus), axis=1))

    numbers = np.unique(gpus)
    return {
        "fewer": np.append(0, numbers)[np.searchsorted(numbers, gpus)],
        "mean": mean,
        "at": lambda figure, number: figure.take(find(number, batch)),
        "single": lambda figure, size: figure.take(find(1, of(size).low)),
    }
