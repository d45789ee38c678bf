"""The mean of paired differences, with its uncertainty."""

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import stdtrit

CONFIDENCE = 0.95


def paired_interval(
    first: Sequence[float], second: Sequence[float], confidence: float = CONFIDENCE
) -> tuple[float, float]:
    """The confidence interval of mean(second − first), from at least 2 pairs.

    Student's t (Biometrika 6, 1908, pp. 1–25) of the differences, for trainings that share their
    seed: what a seed does to both of a pair cancels out. Of equal differences it is a point.
    """
    differences = np.subtract(second, first)
    half = stdtrit(len(differences) - 1, (1 + confidence) / 2) * differences.std(ddof=1)
    half /= math.sqrt(len(differences))
    mean = float(differences.mean())
    return mean - float(half), mean + float(half)
