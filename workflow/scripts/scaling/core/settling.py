"""Whether the repeats of a measurement have become steady."""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import Any

STEADY = 0.02
"""The largest drift, as a fraction, that counts as steady whatever the noise."""


def drift(seconds: Sequence[float]) -> tuple[float, bool]:
    """Return the relative slowdown from the first to the last third, and whether times are steady.

    They are if it is at most `STEADY`, or below the noise: the median difference of consecutive
    epochs (von Neumann et al. 1941). With fewer than 3 epochs it is NaN and not steady.
    """
    if len(seconds) < 3:
        return math.nan, False
    third = len(seconds) // 3
    first, last = median(seconds[:third]), median(seconds[-third:])
    noise = median(abs(after - before) for before, after in pairwise(seconds)) / first
    return last / first - 1, abs(last / first - 1) <= max(STEADY, noise)


def settling(epochs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the `drift` of the measured epochs (slowest rank's seconds), and `settled`."""
    seconds: dict[int, float] = {}
    for row in epochs:
        if row["role"] == "measured":
            seconds[row["epoch"]] = max(seconds.get(row["epoch"], 0.0), row["seconds"])
    change, settled = drift(list(seconds.values()))
    return {"drift": None if math.isnan(change) else change, "settled": settled}
