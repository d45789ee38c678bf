"""Busy time of a device, and kernel classes of a network with a known amount of work."""

from collections import Counter

import pandas as pd
import pytest
import torch
from torch import nn
from torch.profiler import record_function

from scaling.core.grid import CELL_KEYS, Cell
from scaling.instruments import steps
from scaling.instruments.steps import busy_times, communication
from scaling.launch.ranks import Rank
from scaling.tables.measurements import step_classes
from scaling.tables.schema import StudyTables
from scaling.training.evaluation import count_flops

IMAGES, CHANNELS, PIXELS, CLASSES = 4, 8, 64, 10
WEIGHTS = CHANNELS * 3 * 9 + 2 * CHANNELS + CHANNELS * CHANNELS * 9 + CHANNELS * PIXELS * CLASSES
ACTIVATIONS = 4 * IMAGES * CHANNELS * PIXELS
"""Bytes of the output of one layer."""
COMPUTE = "mkldnn_convolution convolution_backward mm native_batch_norm native_batch_norm_backward"
COMPUTE += " clamp_min threshold_backward _foreach_mul_ _foreach_add_"


def launched():
    """Return a network and its kernels in one step, if each operator launches one kernel."""
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


def test_step_of_known_work_has_classes_bytes_and_floor():
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
    assert count_flops(network, (3, 8, 8)) == flops
    times = {"seconds": 1e-3, "running_seconds": 2e-3}
    classes = {kind: times | {"bytes": size} for kind, size in moved.items()}
    of_device = {"iterations": 2, "seconds": 3e-3, "busy_seconds": 2e-3, "classes": classes}
    record = {"cell": {"gpus": 1}, "in_memory": [{"samples": 2 * IMAGES}]}
    record |= {"device_time": [of_device], "model": {"parameters": WEIGHTS}}
    runs = [(Cell("tuned", "ddp", 1, IMAGES, 0), record)]
    cell = dict(zip(CELL_KEYS, ("tuned", "", 1, IMAGES), strict=True))
    peaks = {"peak_flops_per_second": 1e10, "peak_bytes_per_second": 1e9}
    used = pd.DataFrame([cell | {"flops_per_image": flops} | peaks])
    tables = StudyTables("", {"utilization": used, "costs": used})
    limits = step_classes(tables, runs)
    assert limits["seconds"].sum() == pytest.approx(1.5e-3)
    least = IMAGES * flops / 1e10 + moved["optimizer"] / 2 / 1e9
    assert limits["least_seconds"].sum() == pytest.approx(least)
    # What hides behind a class before it runs longer than it counts.
    rates = limits.set_index("kernel_class")["rate"]
    assert rates["products"] == pytest.approx(2 * IMAGES * flops / 1e-3)
    assert rates["optimizer"] == pytest.approx(moved["optimizer"] / 2e-3)
    # A trace that lacks the sizes of lists has too few bytes for an update of all weights.
    record["model"]["parameters"] = 2 * WEIGHTS
    rates = step_classes(tables, runs).set_index("kernel_class")["rate"]
    assert pd.isna(rates["optimizer"]) and rates["products"] > 0


def spans(*pairs, size=0):
    return [(start, end, size) for start, end in pairs]


def test_device_is_busy_once_and_computes_outside_collectives():
    # Device 0: 0 to 40 and 60 to 70, of which it computes from 0 to 20 (in a part of it twice) and
    # from 60 to 70. Device 1: kernels of 5 ns, two at once; an all-reduce that waits 85 ns.
    devices = {
        0: {"communication": spans((10, 40)), "other": spans((0, 20), (5, 10), (60, 70))},
        1: {
            "communication": spans((10, 95)),
            "copies": spans((0, 5), (2, 7), size=8),
            "other": spans((5, 12)),
        },
    }
    first, second = map(busy_times, devices.values())
    assert [*first.values()][:3] == pytest.approx([50e-9, 30e-9, 4])
    assert [*second.values()][:3] == pytest.approx([95e-9, 12e-9, 4])
    classes = second["classes"]
    seven = {"seconds": 7e-9, "running_seconds": 7e-9}
    assert classes["copies"] == pytest.approx(seven | {"bytes": 16})
    # What hides behind a class before it is not counted, so that they add up.
    assert classes["other"] == pytest.approx(seven | {"seconds": 5e-9, "bytes": 0})
    assert classes["communication"]["seconds"] == pytest.approx(83e-9)
    alone = busy_times({"communication": spans((0, 3))})
    assert (alone["busy_seconds"], alone["compute_seconds"]) == (3e-9, 0)


def test_message_takes_the_time_of_the_device_that_joins_last():
    """Device 0 waits for 60 of 85 ns in the first message, device 1 for 5 of 15 in the second."""
    first = {("reduce", 0): (10, 95, 0), ("reduce", 1): (100, 110, 0), ("copy", 0): (110, 112, 0)}
    second = {("reduce", 0): (70, 95, 0), ("reduce", 1): (95, 110, 0)}
    waits = {"communication": [*first.values()], "other": spans((0, 20), (80, 90))}
    found = communication({0: waits}, {0: first}, [first, second])
    # 70 to 95, 100 to 110, and the copy, which the other device does not have.
    assert [*found.values()] == pytest.approx([37e-9, 27e-9, 10e-9, 60e-9])
    late = {"communication": [*second.values()]}
    found = communication({0: late}, {0: second}, [first, second])
    assert [*found.values()] == pytest.approx([35e-9, 35e-9, 0, 5e-9])
    assert communication({0: {"other": spans((0, 1))}}, {}, [])["iterations"] == 0
