"""Mistakes that multiply a printed figure by a factor that follows from its cell."""

import math
from collections.abc import Callable

from examples.grader.published_study import TRAIN_IMAGES

Factor = Callable[[int, int, dict[str, float]], float]
"""From the number of GPUs, the batch size and the values of a cell."""


def _steps(n: int, b: int, images: float = TRAIN_IMAGES) -> int:
    return math.ceil(images / (n * b))


def _peers(n: int) -> float:
    return 2 * (n - 1) / n


def _rest(v: dict[str, float], m: int) -> float:
    return (v["own"] - v["own single"] / m) / v["communication"]


def _waited(n: int, v: dict[str, float]) -> float:
    return v["seconds"] - v["single"] / n


RATIOS: list[tuple[str, str, Factor]] = [
    ("speedup", "times_gpus", lambda n, b, v: n),
    ("speedup", "efficiency", lambda n, b, v: 1 / n),
    ("speedup", "inverted", lambda n, b, v: 1 / v["speedup"] ** 2),
    ("speedup", "ideal", lambda n, b, v: n / v["speedup"]),
    ("speedup", "hundred_times", lambda n, b, v: 100),
    ("compute", "not_divided", lambda n, b, v: n),
    ("compute", "divided_twice", lambda n, b, v: 1 / n),
    ("compute", "thousand_times", lambda n, b, v: 1000),
    ("compute", "total_as_compute", lambda n, b, v: v["seconds"] / v["compute"]),
    ("communication", "thousand_times", lambda n, b, v: 1000),
    ("communication", "per_step", lambda n, b, v: 1 / _steps(n, b)),
    ("communication", "wrong_column", lambda n, b, v: v["compute"] / v["communication"]),
    ("communication", "sign", lambda n, b, v: -1),
    ("compute", "divided_epoch", lambda n, b, v: v["own"] / n / v["compute"]),
    ("compute", "rate", lambda n, b, v: TRAIN_IMAGES / v["compute"] ** 2),
    ("bandwidth", "to_each_peer", lambda n, b, v: v["to each"]),
    ("bandwidth", "one_iteration", lambda n, b, v: 1 / _steps(n, b)),
    ("bandwidth", "gib", lambda n, b, v: 1e9 / 2**30),
    ("bandwidth", "mib", lambda n, b, v: 1e9 / 2**20),
    ("bandwidth", "thousand_times", lambda n, b, v: 1000),
    ("bandwidth", "bits", lambda n, b, v: 8),
    ("bandwidth", "eighth", lambda n, b, v: 1 / 8),
    ("bandwidth", "eight_bytes", lambda n, b, v: 2),
    ("bandwidth", "numbers", lambda n, b, v: 1 / 4),
    ("bandwidth", "ring_factor_twice", lambda n, b, v: _peers(n)),
    ("bandwidth", "no_ring_factor", lambda n, b, v: 1 / _peers(n)),
    ("bandwidth", "floor", lambda n, b, v: (TRAIN_IMAGES // (n * b)) / _steps(n, b)),
    ("bandwidth", "other_images", lambda n, b, v: _steps(n, b, 60_000) / _steps(n, b)),
    ("bandwidth", "other_images", lambda n, b, v: _steps(n, b, 45_000) / _steps(n, b)),
    ("bandwidth", "over_epoch", lambda n, b, v: v["communication"] / v["seconds"]),
    ("bandwidth", "over_total", lambda n, b, v: v["communication"] / v["compute"]),
    ("bandwidth", "batch_as_bandwidth", lambda n, b, v: b / v["bandwidth"]),
    ("utilization", "fraction", lambda n, b, v: 1 / 100),
    ("speedup", "gained", lambda n, b, v: 100 - 100 / v["speedup"]),
    ("speedup", "gained", lambda n, b, v: 1 - 1 / v["speedup"]),
    ("speedup", "saved", lambda n, b, v: (1 - 1 / v["speedup"]) / v["speedup"]),
    ("speedup", "saved", lambda n, b, v: (100 - 100 / v["speedup"]) / v["speedup"]),
    ("speedup", "efficiency", lambda n, b, v: 100 / n),
    ("compute", "minutes", lambda n, b, v: 1 / 60),
    ("compute", "epochs", lambda n, b, v: 5),
    ("compute", "share", lambda n, b, v: 100 / v["own"]),
    ("compute", "other_gpus", lambda n, b, v: n / 2),
    ("communication", "minutes", lambda n, b, v: 1 / 60),
    ("communication", "epochs", lambda n, b, v: 5),
    ("communication", "share", lambda n, b, v: 100 / v["seconds"]),
    ("communication", "share", lambda n, b, v: 1 / v["own"]),
    ("communication", "not_divided", lambda n, b, v: _rest(v, 1)),
    ("communication", "other_share", lambda n, b, v: _rest(v, 2)),
    ("bandwidth", "over_loading", lambda n, b, v: v["communication"] / _waited(n, v)),
    ("bandwidth", "over_undivided", lambda n, b, v: 1 / _rest(v, 1)),
    ("bandwidth", "over_epoch", lambda n, b, v: v["communication"] / v["without"]),
    ("bandwidth", "undivided_iterations", lambda n, b, v: _steps(1, b) / _steps(n, b)),
    ("bandwidth", "gpus_times", lambda n, b, v: n),
    ("bandwidth", "epochs", lambda n, b, v: 1 / 5),
    ("utilization", "above_all", lambda n, b, v: 130 / v["utilization"]),
    ("bandwidth", "constant_factor", lambda n, b, v: 1.37),
    ("bandwidth", "thousand_times", lambda n, b, v: 1e6),
    ("communication", "thousand_times", lambda n, b, v: 1000 / _steps(n, b)),
    ("speedup", "rate", lambda n, b, v: TRAIN_IMAGES / v["seconds"] / v["speedup"]),
]
"""The quantity, the cause, the factor of a cell."""
