"""Where a step goes: what keeps a device busy, and a network of known work with its least time."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.profiler import record_function

from scaling.core.grid import CELL_KEYS, Cell
from scaling.instruments import steps
from scaling.instruments.steps import Trace, length, overlap, union
from scaling.launch.ranks import Rank
from scaling.tables.measurements import step_classes
from scaling.training.evaluation import count_step

IMAGES, CHANNELS, PIXELS, CLASSES = 4, 8, 64, 10
WEIGHTS = CHANNELS * 3 * 9 + 2 * CHANNELS + CHANNELS * CHANNELS * 9 + CHANNELS * PIXELS * CLASSES
ACTIVATIONS = 4 * IMAGES * CHANNELS * PIXELS
"""Bytes of a layer's output."""
COMPUTE = "mkldnn_convolution convolution_backward mm native_batch_norm native_batch_norm_backward"
COMPUTE += " clamp_min threshold_backward _foreach_mul_ _foreach_add_"


def launched():
    """The operators of a step, each of which launches one kernel, as a GPU's would."""
    network = nn.Sequential(
        *(nn.Conv2d(3, CHANNELS, 3, padding=1, bias=False), nn.BatchNorm2d(CHANNELS), nn.ReLU()),
        *(nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1, bias=False), nn.Flatten()),
        nn.Linear(CHANNELS * PIXELS, CLASSES, bias=False),
    )
    sgd = torch.optim.SGD(network.parameters(), 0.1, momentum=0.9, foreach=True)

    def train(_count=1):
        network(torch.randn(IMAGES, 3, 8, 8)).square().mean().backward()
        with record_function("optimizer"):
            sgd.step()

    train()
    events = steps._exported(train, 1, Rank(0, 0, 1, torch.device("cpu")), shapes=True)
    for event in events[:]:
        if event["name"] in {f"aten::{name}" for name in COMPUTE.split()}:
            kernel = {"cat": "kernel", "name": f"kernel {len(events)}", "ts": event["ts"]}
            operator = {"External id": event["args"]["External id"]}
            events.append(kernel | {"pid": 0, "args": operator})
    return network, [next(own) for own in steps.launches(events).values()]


def test_a_step_of_known_work_has_its_classes_bytes_and_floor():
    network, kernels = launched()
    moved = Counter()
    for kind, size in kernels:
        moved[kind] += size
    # Norm, ReLU and both backward are passes over activations, with a few values a channel.
    assert moved.pop("element-wise") == pytest.approx(10 * ACTIVATIONS, rel=0.05)
    # Momentum · m; m + gradient; weight - rate · m.
    assert moved == {"products": 0, "optimizer": 4 * WEIGHTS * (2 + 3 + 3)}
    assert [kind for kind, _ in kernels].count("products") == 2 * 2 + 3

    first, second = (2 * 9 * CHANNELS * inputs * PIXELS for inputs in (3, CHANNELS))
    flops = 2 * first + 3 * second + 3 * 2 * CHANNELS * PIXELS * CLASSES
    assert count_step(network, (3, 8, 8)).flops == flops
    times = {"seconds": 1e-3, "running_seconds": 2e-3}
    classes = {kind: times | {"bytes": size} for kind, size in moved.items()}
    of_device = {"iterations": 2, "seconds": 3e-3, "busy_seconds": 2e-3, "classes": classes}
    record = {"cell": {"gpus": 1}, "in_memory": [{"samples": 2 * IMAGES}]}
    runs = [(Cell("tuned", "ddp", 1, IMAGES, 0), record | {"device_time": [of_device]})]
    cell = dict(zip(CELL_KEYS, ("tuned", "ddp", 1, IMAGES), strict=True))
    used = pd.DataFrame([cell | {"flops_per_image": flops, "peak_flops_per_second": 1e10}])
    peaks = pd.DataFrame([{"quantity": "device_copy", "value": 1e9}])
    limits = step_classes(runs, used, peaks)
    assert limits["seconds"].sum() == pytest.approx(1.5e-3)
    least = IMAGES * flops / 1e10 + moved["optimizer"] / 2 / 1e9
    assert limits["least_seconds"].sum() == pytest.approx(least)
    # What hides behind a class before it runs longer than it counts.
    rates = limits.set_index("kernel_class")["rate"]
    assert rates["products"] == pytest.approx(2 * IMAGES * flops / 1e-3)
    assert rates["optimizer"] == pytest.approx(moved["optimizer"] / 2e-3)


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
    def units(pairs):
        return {step for start, end in pairs for step in range(int(start), int(end))}

    assert overlap(one, other) == pytest.approx(len(units(one) & units(other)))


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
    seven = {"seconds": 7e-6, "running_seconds": 7e-6}
    assert classes["copies"] == pytest.approx(seven | {"bytes": 16})
    # What hides behind a class before it is not counted, so that they add up.
    assert classes["other"] == pytest.approx(seven | {"seconds": 5e-6, "bytes": 0})
    assert classes["communication"]["seconds"] == pytest.approx(83e-6)
    assert trace.communicating() == pytest.approx((85e-6, 2e-6))
    assert Trace({0: {"other": work((0.0, 1.0))}}).communicating() is None
    sent = Trace({0: {"communication": work((0.0, 3.0))}})
    assert by_device(sent) == [pytest.approx([0, 3e-6, 0, 1])]
    assert by_device(Trace({})) == []
