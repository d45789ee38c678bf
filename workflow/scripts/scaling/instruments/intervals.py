"""Arithmetic of time intervals, for traces."""

import numpy as np


def union(intervals: np.ndarray) -> np.ndarray:
    """The same set of instants as `intervals` [n, 2] (start, end), disjoint and in order [m, 2]."""
    if len(intervals) == 0:
        return np.empty((0, 2))
    ordered = intervals[np.argsort(intervals[:, 0], kind="stable")]
    latest = np.maximum.accumulate(ordered[:, 1])
    first = np.concatenate([[True], ordered[1:, 0] > latest[:-1]])
    last = np.concatenate([first[1:], [True]])
    return np.column_stack([ordered[first, 0], latest[last]])


def length(intervals: np.ndarray) -> float:
    """The time covered by `intervals` [n, 2], each instant once."""
    disjoint = union(intervals)
    return float((disjoint[:, 1] - disjoint[:, 0]).sum())


def overlap(one: np.ndarray, other: np.ndarray) -> float:
    """The time covered by both `one` [n, 2] and `other` [m, 2]; exactly 0 where there is none."""
    both = np.concatenate([union(one), union(other)])
    times = np.sort(both, axis=0)
    # In order of time, the k-th span may begin only after k ends: what is left is covered twice.
    return float(np.clip(times[:-1, 1] - times[1:, 0], 0, None).sum())
