import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaling.instruments.kernel_trace import length, overlap, union


def spans(*pairs):
    return np.array(pairs, dtype=float).reshape(-1, 2)


def test_touching_and_nested_intervals_become_one():
    found = union(spans((5, 6), (0, 4), (1, 2), (4, 5), (8, 9)))
    assert found.tolist() == [[0, 6], [8, 9]]


def test_each_instant_counts_once():
    assert length(spans((0, 4), (2, 6), (10, 11))) == 7


def test_overlap_is_what_both_cover():
    communication = spans((0, 4), (6, 8))
    compute = spans((3, 7))
    assert overlap(communication, compute) == 2


def test_no_rounding_is_left_where_nothing_overlaps():
    assert overlap(spans((0, 1)), spans()) == 0
    times = np.random.default_rng(0).uniform(0, 1e-2, (200, 1)).cumsum().reshape(-1, 2)
    assert overlap(times[::2], times[1::2]) == 0


seconds = st.integers(0, 30)
some_spans = st.lists(st.tuples(seconds, seconds).map(sorted), max_size=8).map(
    lambda pairs: spans(*pairs)
)


@given(some_spans, some_spans)
def test_overlap_agrees_with_counting_unit_steps(one, other):
    def steps(pairs):
        return {step for start, end in pairs for step in range(int(start), int(end))}

    assert overlap(one, other) == pytest.approx(len(steps(one) & steps(other)))
