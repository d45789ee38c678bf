"""What a document prints of one strategy: times and figures as intervals, a place for each cell."""

import re
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from types import CodeType
from typing import Any

import numpy as np
import pandas as pd
import yaml

from grader.intervals import NEARLY, Interval, of, printed
from grader.study import BYTES_PER_PARAMETER, PRINTED, TIMES, PublishedStudy
from scaling.registry.strategy import STRATEGIES

FORMULAS = yaml.safe_load(Path(__file__).with_name("formulas.yaml").read_text(encoding="utf-8"))
PARAMETERS: dict[str, int] = FORMULAS["parameters"]
UNKNOWN = of(np.nan)


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
        votes = {
            time: int(moving.meets(rests[time]).sum() + compute.meets(right).sum())
            for time, right in shares.items()
        }
        # Where both explain as much it may be either.
        best = [rests[time] for time, vote in votes.items() if vote == max(votes.values())]
        rest = best[0].hull(best[-1])
        return found | {"share_of": share, "rest": rest, "moving": moving.or_derived(rest)}

    def evaluate(self, formula: str, **more: Any) -> Any:
        """The value of a formula of formulas.yaml or mistakes.yaml, with `more` names."""
        return eval(_compiled(formula), {"__builtins__": {}}, self.names | more)

    def with_values(self, columns: dict[str, Interval]) -> "Cells":
        """These cells with other columns."""
        return replace(self, columns=self.columns | columns)


@cache
def _compiled(formula: str) -> CodeType:
    return compile(formula, formula, "eval")


def _every(holds: np.ndarray, known: np.ndarray, share: float = 1.0) -> np.ndarray:
    """What is known, where several are and `holds` is true of such a share of them."""
    return known & bool(known.sum() > 1 and holds[known].mean() >= share)


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
        **{"own_row": np.arange(len(n)) < len(own), "several": gpus > 1, "every": _every},
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
