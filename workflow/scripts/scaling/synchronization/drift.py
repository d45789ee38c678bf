"""How far the running statistics of batch norm differ between ranks."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Statistics = dict[str, NDArray[np.float64]]
"""`mean` and `variance`: the running statistics of all channels of all batch norms of one rank."""


def drift(ranks: Sequence[Statistics]) -> dict[str, float]:
    """The range over the ranks (largest minus smallest), of a channel, relative to its size.

    A variance is relative to its mean over the ranks; a mean, which may be zero, to the standard
    deviation that this variance gives. Returns `mean_max`, `mean_mean`, `variance_max` and
    `variance_mean`: the largest and the mean over all channels, NaN where a training has diverged.
    Channels that never vary (variance zero on every rank) have no relative difference and are left
    out; 0 where none is left.
    """
    means, variances = (np.stack([rank[name] for rank in ranks]) for name in ("mean", "variance"))
    variance = variances.mean(axis=0)
    varies = variance != 0
    relative = {
        "mean": np.ptp(means, axis=0)[varies] / np.sqrt(variance[varies]),
        "variance": np.ptp(variances, axis=0)[varies] / variance[varies],
    }
    return {
        f"{name}_{of}": float(reduce(values)) if values.size else 0.0
        for name, values in relative.items()
        for of, reduce in (("max", np.max), ("mean", np.mean))
    }
