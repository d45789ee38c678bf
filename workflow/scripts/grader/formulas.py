"""The cells of a strategy as intervals, by the names of formulas.yaml."""

from __future__ import annotations

import re
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
"""Gradients are taken as float32, which every study of this lab used."""


_compiled = cache(partial(compile, filename="formula", mode="eval"))


@dataclass(frozen=True)
class Cells:
    """The cells of one strategy: N, b, times and figures, a place for each.

    The first `own` cells are the strategy's, the others are times on one GPU from elsewhere in the
    study. `names` are what those of formulas.yaml and slips.yaml stand for; `others` are the names
    of other strategies and hardware whose times `alone(G)` and `beside_of(G)` have.
    """

    strategy: str
    gpus: np.ndarray
    batch: np.ndarray
    own: int
    images: int
    peak: str
    others: list[str]
    names: dict[str, Any]

    def evaluate(self, formula: str, **more: Any) -> Any:
        """The value of a formula, with `more` names."""
        return eval(_compiled(formula), {"__builtins__": {}}, self.names | more)

    @property
    def several(self) -> np.ndarray:
        return self.gpus > 1


def of_strategy(study: Study, strategy: str, every: list[Study], images: int) -> Cells:
    """The cells of a study's `strategy`; `every` study of the file may be taken for it."""
    rows = study.rows
    own = rows[rows["strategy"] == strategy]
    singles = rows[(rows["strategy"] != strategy) & (rows["gpus"] == 1)]
    singles = singles.drop_duplicates(["gpus", "batch_size"], keep=False)
    sweep = [{"gpus": 1, "batch_size": size, "epoch": one} for size, one in study.sweep.items()]
    extra = pd.DataFrame(sweep, columns=rows.columns).replace({np.nan: None})
    singles = pd.concat([singles, extra]) if sweep else singles
    singles = singles.drop_duplicates(["gpus", "batch_size"])
    both = [own, singles[~singles["batch_size"].isin(own.query("gpus == 1")["batch_size"])]]
    table = {name: [x for part in both for x in part[name]] for name in rows.columns}
    gpus, batch = (np.array(table[name], dtype=int) for name in ("gpus", "batch_size"))
    n, b = gpus.astype(float), batch.astype(float)
    columns = {name: printed(table[name], 0.5) for name in TIMES}
    # Documents truncate what they derive as often as they round it.
    columns |= {name: printed(table[name], 1.0) for name in ["rate", *FIGURES]}
    for name in FIGURES:
        for end in columns[name]:
            end[len(own) :] = np.nan
    again = {(1, size): one for size, one in study.sweep.items()}
    columns["again"] = printed([again.get(cell) for cell in zip(gpus, batch, strict=True)], 0.5)
    epoch, training, loading = (columns[name] for name in ("epoch", "training", "loading"))
    measured = epoch.known.any()
    if not measured and columns["rate"].known.any():
        epoch = of(float(images)) / columns["rate"]
        columns["rate"] = UNKNOWN + n * 0.0
    gpu, peak = _peak(study)
    gflop = FORMULAS["gflop_of_image"] if study.of_lab and measured else np.nan
    network = study.parameters or (np.nan, np.nan)
    steps = np.ceil(images / (n * b))
    names: dict[str, Any] = {
        **columns,
        "own_row": np.arange(len(n)) < len(own),
        "several": gpus > 1,
        "share": UNKNOWN,
        "T": epoch,
        "W": training.or_else((epoch - loading).where(loading.known, UNKNOWN)),
        "K": Interval(*(np.array(end * BYTES_PER_PARAMETER) for end in network)),
        "steps": columns["iterations"].or_else(of(steps)),
    }
    numbers: dict[str, Any] = {"N": n, "b": b, "one": 1.0, "images": images, "unknown": np.nan}
    numbers |= {"full_steps": images // (n * b), "parts_steps": images / (n * b)}
    numbers |= {"single_steps": np.ceil(images / b), "floor": images * gflop / peak / 1e3 / n}
    names |= {name: of(number + n * 0.0) for name, number in numbers.items()}
    # Of a strategy that nobody states a ring is likelier; of others no bytes are known.
    for name, known in (("sent", strategy or "ddp"), ("ring", "ddp")):
        of_bytes = STRATEGIES.find(known).busiest_bytes if strategy in ("", "dp", "ddp") else None
        bytes_ = [of_bytes(number, 1.0) if of_bytes else np.nan for number in gpus.tolist()]
        names[name] = of(np.array(bytes_))
    names |= _of_others(gpus, batch, b * n if study.global_batch else b)
    foreign = _foreign(study, strategy, every)

    def timed(name: str, cells: Any) -> Interval:
        return printed([foreign[name].get((int(m), int(size))) for m, size in cells], 0.5)

    names["alone"] = lambda name: timed(name, [(1, size) for size in batch])
    names["beside_of"] = lambda name: timed(name, zip(gpus, batch, strict=True))
    names["T1"], names["W1"] = (names["single"](names[time], b) for time in "TW")
    if study.global_batch:
        names["T1"], names["W1"] = (names["single"](names[time], n * b) for time in "TW")
        names["T1b"] = names["single"](names["T"], b)
    said = f"{gpu}, {peak:g} TFLOP/s"
    return Cells(strategy, gpus, batch, len(own), images, said, [*foreign], names)


def _foreign(study: Study, strategy: str, every: list[Study]) -> dict[str, dict[Any, Any]]:
    """The times of other strategies and of other studies of a file, by their names."""
    found = dict[str, dict[Any, Any]]()
    for other in every:
        for name, rows in other.rows.groupby("strategy"):
            if (other.name, name) != (study.name, strategy) and "epoch" in rows:
                words = str(name) if other is study else f"{other.name}"
                cells = zip(rows["gpus"], rows["batch_size"], rows["epoch"], strict=True)
                found[words] = {(n, b): one for n, b, one in cells}
    return dict([*found.items()][:8])


def _peak(study: Study) -> tuple[str, float]:
    """The GPU that a study names and the TFLOP/s of its peak."""
    for name, peak in sorted(FORMULAS["peaks"].items(), key=lambda one: -len(one[0])):
        # A study called t4 or a10 may be that of a group.
        text = f"{study.name if len(name) > 3 else ''} {study.description.hardware}".lower()
        words = name.lower().replace(" ", "[ _-]?")
        if re.search(rf"(?<![a-wyz0-9]){words}(?![a-z0-9])", text):
            return name, peak
    return "H100", FORMULAS["peaks"]["H100"]


def _of_others(gpus: np.ndarray, batch: np.ndarray, base: np.ndarray) -> dict[str, Any]:
    """The names by which a cell has figures of other cells."""
    pairs = zip(gpus.tolist(), batch.tolist(), strict=True)
    places = {pair: i for i, pair in enumerate(pairs)}

    def find(*cell: Any) -> np.ndarray:
        """The index of the cell on so many GPUs, of such a batch size, or -1."""
        wanted = (each.tolist() for each in np.broadcast_arrays(*cell, gpus)[:2])
        return np.array([places.get(pair, -1) for pair in zip(*wanted, strict=True)], dtype=int)

    numbers = np.unique(gpus)
    fewer = np.append(0, numbers)[np.searchsorted(numbers, gpus)]
    sizes = np.unique(batch[gpus == 1])

    def mean(figure: Interval) -> Interval:
        there = (gpus == 1) & figure.known
        ends = (end[there].mean() if there.any() else np.nan for end in figure)
        return Interval(*(np.full(len(gpus), end) for end in ends))

    return {
        "fewer": fewer,
        "mean": mean,
        "first_b": sizes[0] if len(sizes) else 0,
        "at": lambda figure, number: figure.take(find(number, batch)),
        "beside": lambda figure, size: figure.take(np.where(batch == size, -1, find(gpus, size))),
        "single": lambda figure, size: figure.take(find(1, of(size).low)),
    }
