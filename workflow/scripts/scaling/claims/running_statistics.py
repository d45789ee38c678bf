"""What few updates leave of the start of the batch norms' running statistics."""

import pandas as pd

from scaling.core import numbers as fmt
from scaling.tables.experiments.best_remedy import PRECISE

MOMENTUM = 0.1
"""Of torch.nn.BatchNorm2d: the share of an update's own batch in the running statistics."""
MUCH = 0.1


def weight_of_start(updates: float) -> float:
    """The weight that mean 0 and variance 1 still have after so many updates."""
    return float((1 - MOMENTUM) ** updates)


def caveat(*groups: pd.DataFrame) -> str:
    """A sentence on those `groups`, of runs of one global batch each, where it is much, or ""."""
    planned = {}
    for runs in groups:
        if not runs.empty and PRECISE not in runs["options"].iloc[0]:
            batch, updates = (int(runs[key].iloc[0]) for key in ("global_batch", "planned_updates"))
            planned[batch] = updates
    sentence = caveat_of(planned)
    return f" {sentence}" if sentence else ""


def caveat_of(planned_updates: dict[int, int]) -> str:
    """A sentence on those global batches after whose updates it is much, or ""."""
    parts = []
    for batch, updates in planned_updates.items():
        weight = weight_of_start(updates)
        if weight > MUCH:
            parts.append(f"{fmt.percent(weight)} after the {updates} updates at {batch}")
    if not parts:
        return ""
    return (
        f"The start of the batch norms’ running statistics still has a weight of "
        f"{', of '.join(parts)}: test figures there are also about these statistics."
    )
