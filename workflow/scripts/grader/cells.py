"""What a document prints of one strategy: times and figures as intervals, a place for each cell."""

import re
from dataclasses import dataclass, field, replace
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
    study. `share` is the percent that a GB/s is of the peak. `arithmetic` is an epoch's seconds on
    one `gpu` at its peak. `fixed` keeps what no column changes.
    """

    strategy: str
    gpus: np.ndarray
    batch: np.ndarray
    own: int
    columns: dict[str, Interval]
    count: np.ndarray
    images: int
    gpu: str
    arithmetic: float
    fixed: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def _places(self) -> dict[tuple[int, int], int]:
        pairs = zip(self.gpus.tolist(), self.batch.tolist(), strict=True)
        return {pair: i for i, pair in enumerate(pairs)}

    def find(self, gpus: np.ndarray | int, batch: np.ndarray | int) -> np.ndarray:
        """Return for each cell the index of that on so many GPUs, of such a batch size, or -1."""
        wanted = np.broadcast_arrays(gpus, batch, self.gpus)[:2]
        pairs = zip(*(each.tolist() for each in wanted), strict=True)
        return np.array([self._places.get(pair, -1) for pair in pairs], dtype=int)

    @cached_property
    def groups(self) -> list[np.ndarray]:
        """The indices of the cells of each number of GPUs, in its order."""
        order = np.argsort(self.gpus, kind="stable")
        return np.split(order, np.flatnonzero(np.diff(self.gpus[order])) + 1)

    def _constant_names(self) -> dict[str, Any]:
        """What the names stand for that depend on no column."""
        n, b = self.gpus.astype(float), self.batch.astype(float)
        # Of a strategy that nobody states either may be meant.
        sent = {"own": "ddp" if self.strategy == "ddp" else "dp", "ring": "ddp"}
        least = min(self.batch[self.gpus == 1], default=0)
        arrays = {
            **{"N": n, "b": b, "count": self.count, "one": np.ones_like(n)},
            **{"images": np.full_like(n, self.images), "floor": self.arithmetic / n},
            **{"steps": np.ceil(self.images / (n * b)), "full_steps": self.images // (n * b)},
            **{"single_steps": np.ceil(self.images / b), "full_single": self.images // b},
            **{"least_b": np.full_like(n, least), "unknown": np.full_like(n, np.nan)},
        }
        for name, strategy in sent.items():
            of_bytes = STRATEGIES.find(strategy).busiest_bytes
            arrays[name] = np.array([of_bytes(gpus, 1.0) for gpus in self.gpus.tolist()])
        numbers = np.unique(self.gpus)
        fewer = np.append(0, numbers)[np.searchsorted(numbers, self.gpus)]
        second = np.append(numbers[numbers > 1], [0, 0])[1]
        return {name: of(array) for name, array in arrays.items()} | {
            **{"own_row": np.arange(len(n)) < self.own, "several": n > 1, "every": _every},
            **{"fewer": fewer, "neighbour": np.where(fewer > 1, fewer, second)},
            "first": self.find(1, self.batch),
            "around": Interval(np.array(1 - NEARLY), np.array(1 + NEARLY)),
            "steps_of": lambda images: of(np.ceil(images / (n * b))),
            "at": lambda figure, gpus: figure.take(self.find(gpus, self.batch)),
            "beside": lambda figure, batch: figure.take(
                np.where(self.batch == batch, -1, self.find(self.gpus, batch))
            ),
            "single": lambda figure, batch: figure.take(self.find(1, of(batch).low)),
            "whole": lambda figure: of(np.round(figure.middle)),
            "log2": lambda figure: figure.each(np.log2),
        }

    @cached_property
    def names(self) -> dict[str, Any]:
        """What the names in formulas.yaml stand for."""
        if not self.fixed:
            self.fixed.update(self._constant_names())
        found: dict[str, Any] = self.fixed | self.columns
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
    singles = pd.concat([own, others, study.sweep]).query("gpus == 1").drop_duplicates(cell)
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
    return Cells(
        strategy,
        every["gpus"].to_numpy(int),
        every["batch_size"].to_numpy(int),
        own=len(own),
        columns=columns,
        count=every["count"].to_numpy(float),
        images=train_images,
        gpu=f"{gpu}, {peak:g} TFLOP/s; {gflop:g} GFLOP an image",
        arithmetic=train_images * gflop / peak / 1e3,
    )
