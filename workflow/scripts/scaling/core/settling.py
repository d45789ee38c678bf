"""Whether a measurement that is repeated has settled, or changes still."""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import Any

STEADY = 0.02
"""The largest drift, as a share, of epochs that have settled whatever their noise."""


def drift(seconds: Sequence[float]) -> tuple[float, bool]:
    """How much longer the last third of epochs take than the first, and whether they have settled.

    The share by which the median of the last third is above that of the first. They have settled
    where it is at most `STEADY`, or less than the noise: the median difference of an epoch from the
    one before it, which a trend hardly widens (von Neumann et al., Annals of Mathematical
    Statistics 12, 1941, pp. 153–162). NaN, and not settled, for fewer than 3 epochs.
    """
    if len(seconds) < 3:
        return math.nan, False
    third = len(seconds) // 3
    first, last = median(seconds[:third]), median(seconds[-third:])
    noise = median(abs(after - before) for before, after in pairwise(seconds)) / first
    return last / first - 1, abs(last / first - 1) <= max(STEADY, noise)


def settling(epochs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The `drift` of the measured epochs, each as long as its slowest rank's, and `settled`."""
    seconds: dict[int, float] = {}
    for row in epochs:
        if row["role"] == "measured":
            seconds[row["epoch"]] = max(seconds.get(row["epoch"], 0.0), row["seconds"])
    change, settled = drift(list(seconds.values()))
    return {"drift": None if math.isnan(change) else change, "settled": settled}
