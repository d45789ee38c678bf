import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaling.instruments.steps import Trace, length, overlap, union


def spans(*pairs):
    return np.array(pairs, dtype=float).reshape(-1, 2)


def test_touching_and_nested_intervals_become_one():
    found = union(spans((5, 6), (0, 4), (1, 2), (4, 5), (8, 9)))
    assert found.tolist() == [[0, 6], [8, 9]]
    assert length(spans((0, 4), (2, 6), (10, 11))) == 7


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


def work(*pairs, size=0):
    return [(*pair, size) for pair in pairs]


def by_device(trace):
    return [list(each.values())[:4] for each in trace.by_device()]


def test_anything_keeps_a_device_busy_once_and_a_wait_inside_a_collective_does_not_compute():
    # Device 0: 0 to 40 and 60 to 70, of which it computes from 0 to 20 and from 60 to 70. Device 1:
    # three kernels of 5 µs, two at once; an all-reduce that waits 85 µs for another rank.
    first = {"communication": work((10.0, 40.0)), "other": work((0.0, 20.0), (60.0, 70.0))}
    second = {"communication": work((10.0, 95.0)), "copies": work((0.0, 5.0), (2.0, 7.0), size=8)}
    trace = Trace({1: second | {"other": work((5.0, 12.0))}, 0: first})
    first, second = by_device(trace)
    assert first == pytest.approx([0, 50e-6, 30e-6, 3])
    assert second == pytest.approx([1, 95e-6, 12e-6, 4])
    classes = trace.by_device()[1]["classes"]
    assert classes["copies"] == pytest.approx({"seconds": 7e-6, "bytes": 16})
    # What hides behind a class before it is not counted, so that they add up.
    assert classes["other"]["seconds"] == pytest.approx(5e-6)
    assert classes["communication"]["seconds"] == pytest.approx(83e-6)
    assert trace.communicating() == pytest.approx((85e-6, 2e-6))
    assert Trace({0: {"other": work((0.0, 1.0))}}).communicating() is None
    sent = Trace({0: {"communication": work((0.0, 3.0))}})
    assert by_device(sent) == [pytest.approx([0, 3e-6, 0, 1])]
    assert by_device(Trace({})) == []
