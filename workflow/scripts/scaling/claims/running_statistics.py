"""What few updates leave of the start of the batch norms' running statistics."""

import pandas as pd

from scaling import report_format as fmt
from scaling.convergence.best import PRECISE

MOMENTUM = 0.1
"""Of torch.nn.BatchNorm2d: the share of an update's own batch in the running statistics."""
MUCH = 0.1


def weight_of_start(updates: float) -> float:
    """The weight that mean 0 and variance 1 still have after so many updates."""
    return float((1 - MOMENTUM) ** updates)


def caveat(runs: pd.DataFrame) -> str:
    """A sentence for `runs` of one global batch whose test figures are about this start, or ""."""
    if runs.empty or PRECISE in runs["options"].iloc[0]:
        return ""
    updates = int(runs["planned_updates"].iloc[0])
    weight = weight_of_start(updates)
    if weight <= MUCH:
        return ""
    return (
        f" At a global batch of {int(runs['global_batch'].iloc[0])}, {updates} updates leave the "
        f"start of the batch norms’ running statistics a weight of {fmt.percent(weight)}, so test "
        "figures there are also about these."
    )
