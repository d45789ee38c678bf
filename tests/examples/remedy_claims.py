"""Selections of the records made by hand, for the claims on question 4."""

from examples.convergence_records import study
from scaling.core.records.convergence import ConvergenceRecord


def few(*changed: ConvergenceRecord) -> list[ConvergenceRecord]:
    """Records of plain SGD, a warm-up and equal updates at 128 and 512, some of them changed.

    Batch 128 has 73 % test accuracy with its best technique and 71 % with plain SGD.
    """
    names = ("none", "rate_sweep", "warmup", "equal")
    known = [each for each in study() if each["remedy"] in names and each["global_batch"] < 8192]
    records = {(each["remedy"], each["global_batch"]): each for each in (*known, *changed)}
    return list(records.values())
