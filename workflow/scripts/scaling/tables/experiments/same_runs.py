"""Which runs of two remedies are the same trainings: equal options at equal rates train once."""

import numpy as np
import pandas as pd

TRAINED = ["global_batch", "seed", "updates", "train_loss", "train_accuracy"]
EVALUATED = ["test_loss", "test_accuracy"]


def same_training(own: pd.DataFrame, other: pd.DataFrame) -> bool:
    """Whether both have equal training figures in every seed, exactly.

    Remedies that differ in `precise_batch_norm` alone train so and are evaluated in two ways.
    Never where a loss is not finite.
    """
    return _equal(own, other, TRAINED)


def same_runs(own: pd.DataFrame, other: pd.DataFrame) -> bool:
    """Whether all figures are equal in every seed: one run under two names."""
    return _equal(own, other, [*TRAINED, *EVALUATED])


def _equal(own: pd.DataFrame, other: pd.DataFrame, columns: list[str]) -> bool:
    figures = [runs[columns].sort_values("seed").to_numpy(float) for runs in (own, other)]
    return bool(len(own)) and np.array_equal(*figures)
