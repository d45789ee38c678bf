"""What a printed figure may have been computed by: ours, and those that documents have used.

A definition is a formula over the facts of one cell, a name, and the mistakes it makes
(report/mistakes.yaml), none for a sound one. The first of each quantity is ours.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Literal

import yaml

from scaling.registry.strategy import STRATEGIES
from scaling.tables.limits import GB, ring_factor

MISTAKES_FILE = Path(__file__).parents[4] / "report/mistakes.yaml"
BY_COMMUNICATION = "communication seconds"
"""In the names of the bandwidths that divide by them."""


@dataclass(frozen=True)
class Facts:
    """What a document knew of one cell (N GPUs, b per GPU): times in seconds, NaN if unknown.

    `single` is T(1,b), `double` T(2,b), `first_single` T(1,b) of the smallest b, `other_singles`
    T(1,b) of all other b. `compute_seconds`, `communication_seconds` are the figures printed for
    the cell: a document that derives one figure from another is followed along its own numbers.
    `moving_seconds` is what a bandwidth divides by: the communication printed, ours if none is.
    """

    strategy: str
    gpus: int
    batch_size: int
    seconds: float
    seconds_without_loading: float
    single: float
    single_without_loading: float
    double: float
    first_single: float
    other_singles: tuple[float, ...]
    iterations: float
    gradient_bytes: float
    compute_seconds: float
    communication_seconds: float
    moving_seconds: float

    @property
    def compute(self) -> float:
        """T(1,b) / N, the whole epoch."""
        return self.single / self.gpus

    @property
    def compute_without_loading(self) -> float:
        """T(1,b) / N, without the wait for data."""
        return self.single_without_loading / self.gpus

    @property
    def rest(self) -> float:
        """T(N,b) - T(1,b) / N, whole epochs."""
        return self.seconds - self.compute

    @property
    def rest_without_loading(self) -> float:
        """T(N,b) - T(1,b) / N, both without the wait for data."""
        return self.seconds_without_loading - self.compute_without_loading


@dataclass(frozen=True)
class Mistake:
    """How grave it is, and what happened, to follow "the printed speedup …".

    `{rule}` in the sentence stands for the definition that gives the figure.
    """

    severity: Literal["error", "warning", "info"]
    sentence: str


MISTAKES = {
    name: Mistake(**entry)
    for name, entry in yaml.safe_load(MISTAKES_FILE.read_text(encoding="utf-8")).items()
}


@dataclass(frozen=True)
class Definition:
    """A formula; `chosen` is False for one that explains single cells and is nobody's rule."""

    name: str
    value: Callable[[Facts], float]
    mistakes: tuple[str, ...] = ()
    chosen: bool = True


def _bandwidth(*mistakes: str) -> Definition:
    """Define bytes over the seconds beside them, in GB/s, with some of `_OF_BANDWIDTHS`.

    Sound are the bytes over the strategy's busiest link, times the iterations of an epoch, over
    the seconds of communication, in 1e9 bytes; mistaken a ring's bytes whatever the strategy, those
    of one iteration, the seconds of the column called compute, and 2³⁰ bytes.
    """
    ring, once, total, gib = (name in mistakes for name in _OF_BANDWIDTHS)

    def value(cell: Facts) -> float:
        strategy = STRATEGIES.find("ddp" if ring else cell.strategy)
        moved = strategy.busiest_bytes(cell.gpus, cell.gradient_bytes)
        seconds = cell.compute_seconds if total else cell.moving_seconds
        if not seconds:
            return float("nan")
        return moved * (1 if once else cell.iterations) / seconds / (2.0**30 if gib else GB)

    moved = f"{'ring bytes' if ring else 'bytes'} of one {'iteration' if once else 'epoch'}"
    seconds = "the seconds called compute" if total else BY_COMMUNICATION
    return Definition(f"{moved} / {seconds}{', in GiB' if gib else ''}", value, mistakes)


_OF_BANDWIDTHS = ["ring_for_dp", "one_iteration", "over_total", "gib"]

WITHOUT, WHOLE = "T(1,b) / N without loading", "T(1,b) / N"
REST_WITHOUT, REST = f"T(N,b) - {WITHOUT}", f"T(N,b) - {WHOLE}"

DEFINITIONS: dict[str, list[Definition]] = {
    "speedup": [
        Definition("T(1,b) / T(N,b)", lambda cell: cell.single / cell.seconds),
        Definition(
            "N · T(1,b) / T(N,b)",
            lambda cell: cell.gpus * cell.single / cell.seconds,
            ("times_gpus",),
        ),
        Definition(
            "T(2,b) / T(N,b)", lambda cell: cell.double / cell.seconds, ("two_gpu_baseline",)
        ),
        # b₀ is the smallest batch of the study.
        Definition(
            "T(1,b₀) / T(N,b)", lambda cell: cell.first_single / cell.seconds, ("one_baseline",)
        ),
    ],
    "compute_seconds": [
        Definition(WITHOUT, lambda cell: cell.compute_without_loading),
        Definition(WHOLE, lambda cell: cell.compute, ("loading_counted",)),
        Definition("T(N,b)", lambda cell: cell.seconds, ("total_as_compute", "loading_counted")),
        # With the communication printed beside it.
        Definition(
            "T(N,b) without loading",
            lambda cell: cell.compute_without_loading + cell.communication_seconds,
            ("total_as_compute",),
        ),
        Definition(REST_WITHOUT, lambda cell: cell.rest_without_loading, ("wrong_column",)),
        Definition(REST, lambda cell: cell.rest, ("wrong_column",)),
    ],
    "communication_seconds": [
        Definition(REST_WITHOUT, lambda cell: cell.rest_without_loading),
        Definition(REST, lambda cell: cell.rest, ("loading_counted",)),
        Definition(
            f"{REST_WITHOUT}, T(N,b) printed as compute",
            lambda cell: cell.compute_seconds - cell.compute_without_loading,
            ("loading_left_out",),
        ),
        Definition(WITHOUT, lambda cell: cell.compute_without_loading, ("wrong_column",)),
        Definition(WHOLE, lambda cell: cell.compute, ("wrong_column",)),
        Definition(
            "T(N,b) - compute as printed",
            lambda cell: cell.seconds - cell.compute_seconds,
            ("follows_from_compute",),
            chosen=False,
        ),
    ],
    "bandwidth_gb_per_s": [
        *(
            _bandwidth(*mistakes)
            for count in range(len(_OF_BANDWIDTHS) + 1)
            for mistakes in combinations(_OF_BANDWIDTHS, count)
        ),
        # The ring's factor on the batch size instead of on the bytes.
        Definition(
            "2(N-1)/N · b",
            lambda cell: ring_factor(cell.gpus) * cell.batch_size,
            ("batch_as_bandwidth",),
        ),
    ],
}
OF_ANOTHER_ROW: dict[str, tuple[str, Callable[[Facts], float]]] = {
    "speedup": ("T(1,b') / T(N,b)", lambda cell: cell.seconds),
    "compute_seconds": ("T(1,b') / N", lambda cell: cell.gpus),
}
"""The formulas that divide the time of another row, that which comes closest to what is printed,
and what they divide it by."""
