"""What a printed figure may have been computed by: ours, and those that documents have used.

A definition is a formula over the facts of one cell, a name, and the mistakes it makes
(`scaling.mistakes`), none for a sound one. The first of each quantity is ours.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import product

from scaling.tables.bandwidth import bytes_per_iteration
from scaling.tables.limits import GB, ring_factor

GIB = 2.0**30
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


@dataclass(frozen=True)
class Definition:
    """A formula; `chosen` is False for one that explains single cells and is nobody's rule."""

    name: str
    value: Callable[[Facts], float]
    mistakes: tuple[str, ...] = ()
    chosen: bool = True


def speedup(cell: Facts) -> float:
    """T(1,b) / T(N,b): the epoch on one GPU over the epoch on N, at the same batch per GPU."""
    return cell.single / cell.seconds


def speedup_times_gpus(cell: Facts) -> float:
    """N · T(1,b) / T(N,b)."""
    return cell.gpus * speedup(cell)


def speedup_over_two(cell: Facts) -> float:
    """T(2,b) / T(N,b)."""
    return cell.double / cell.seconds


def speedup_of_smallest_batch(cell: Facts) -> float:
    """T(1,b₀) / T(N,b), b₀ being the smallest batch of the study."""
    return cell.first_single / cell.seconds


def compute(cell: Facts) -> float:
    """T(1,b) / N, the whole epoch."""
    return cell.single / cell.gpus


def compute_without_loading(cell: Facts) -> float:
    """T(1,b) / N, both without the wait for data."""
    return cell.single_without_loading / cell.gpus


def whole_epoch(cell: Facts) -> float:
    """T(N,b)."""
    return cell.seconds


def whole_epoch_without_loading(cell: Facts) -> float:
    """T(1,b) / N without loading, plus the communication printed beside it."""
    return compute_without_loading(cell) + cell.communication_seconds


def communication(cell: Facts) -> float:
    """T(N,b) - T(1,b) / N, whole epochs."""
    return cell.seconds - compute(cell)


def communication_without_loading(cell: Facts) -> float:
    """T(N,b) - T(1,b) / N, both without the wait for data."""
    return cell.seconds_without_loading - compute_without_loading(cell)


def communication_in_compute(cell: Facts) -> float:
    """What is printed as compute, less T(1,b) / N without loading."""
    return cell.compute_seconds - compute_without_loading(cell)


def rest_of_printed_compute(cell: Facts) -> float:
    """T(N,b) less the compute time printed beside it."""
    return cell.seconds - cell.compute_seconds


def bandwidth(
    cell: Facts, *, ring: bool, one_iteration: bool, over_total: bool, gib: bool
) -> float:
    """Bytes over the seconds beside it, in GB/s; each option is one mistake.

    Bytes are those of `bandwidth.bytes_per_iteration` (`ring`: of a ring whatever the strategy)
    times the iterations of an epoch (`one_iteration`: once); seconds those of the communication
    (`over_total`: of the column called compute); the unit 1e9 bytes (`gib`: 2³⁰).
    """
    strategy = "ddp" if ring else cell.strategy
    moved = bytes_per_iteration(strategy, cell.gpus, cell.gradient_bytes)
    iterations = 1 if one_iteration else cell.iterations
    seconds = cell.compute_seconds if over_total else cell.moving_seconds
    return moved * iterations / seconds / (GIB if gib else GB) if seconds else float("nan")


def batch_as_bandwidth(cell: Facts) -> float:
    """2(N-1)/N · b: the ring's factor on the batch size instead of on the bytes."""
    return ring_factor(cell.gpus) * cell.batch_size


def compute_of_another_row(cell: Facts, printed: float) -> float:
    """T(1,b') / N of that other batch size b' which comes closest to what is printed."""
    return _closest((other / cell.gpus for other in cell.other_singles), printed)


def speedup_of_another_row(cell: Facts, printed: float) -> float:
    """T(1,b') / T(N,b) of that other batch size b' which comes closest to what is printed."""
    return _closest((other / cell.seconds for other in cell.other_singles), printed)


def _closest(values: Iterable[float], printed: float) -> float:
    return min(values, key=lambda value: abs(value - printed), default=float("nan"))


def _bandwidths() -> list[Definition]:
    """Every combination of the mistakes a bandwidth can have, the fewest first."""
    options = {
        "ring": "ring_for_dp",
        "one_iteration": "one_iteration",
        "over_total": "over_total",
        "gib": "gib",
    }
    found = []
    for choice in product([False, True], repeat=len(options)):
        made = dict(zip(options, choice, strict=True))
        moved = ("ring bytes" if made["ring"] else "bytes") + (
            " of one iteration" if made["one_iteration"] else " of one epoch"
        )
        seconds = "the seconds called compute" if made["over_total"] else BY_COMMUNICATION
        found.append(
            Definition(
                f"{moved} / {seconds}{', in GiB' if made['gib'] else ''}",
                lambda cell, made=made: bandwidth(cell, **made),  # type: ignore[misc]
                tuple(mistake for option, mistake in options.items() if made[option]),
            )
        )
    return sorted(found, key=lambda definition: len(definition.mistakes))


DEFINITIONS: dict[str, list[Definition]] = {
    "speedup": [
        Definition("T(1,b) / T(N,b)", speedup),
        Definition("N · T(1,b) / T(N,b)", speedup_times_gpus, ("times_gpus",)),
        Definition("T(2,b) / T(N,b)", speedup_over_two, ("two_gpu_baseline",)),
        Definition("T(1,b₀) / T(N,b)", speedup_of_smallest_batch, ("one_baseline",)),
    ],
    "compute_seconds": [
        Definition("T(1,b) / N without loading", compute_without_loading),
        Definition("T(1,b) / N", compute, ("loading_counted",)),
        Definition("T(N,b)", whole_epoch, ("total_as_compute", "loading_counted")),
        Definition("T(N,b) without loading", whole_epoch_without_loading, ("total_as_compute",)),
        Definition(
            "T(N,b) - T(1,b) / N without loading", communication_without_loading, ("wrong_column",)
        ),
        Definition("T(N,b) - T(1,b) / N", communication, ("wrong_column",)),
    ],
    "communication_seconds": [
        Definition("T(N,b) - T(1,b) / N without loading", communication_without_loading),
        Definition("T(N,b) - T(1,b) / N", communication, ("loading_counted",)),
        Definition(
            "T(N,b) - T(1,b) / N without loading, T(N,b) printed as compute",
            communication_in_compute,
            ("loading_left_out",),
        ),
        Definition("T(1,b) / N without loading", compute_without_loading, ("wrong_column",)),
        Definition("T(1,b) / N", compute, ("wrong_column",)),
        Definition(
            "T(N,b) - compute as printed",
            rest_of_printed_compute,
            ("follows_from_compute",),
            chosen=False,
        ),
    ],
    "bandwidth_gb_per_s": [
        *_bandwidths(),
        Definition("2(N-1)/N · b", batch_as_bandwidth, ("batch_as_bandwidth",)),
    ],
}
OF_ANOTHER_ROW = {
    "speedup": ("T(1,b') / T(N,b)", speedup_of_another_row),
    "compute_seconds": ("T(1,b') / N", compute_of_another_row),
}
"""The formulas that take the time of another row, and need the printed figure to tell which."""
