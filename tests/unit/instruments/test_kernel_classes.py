"""A network of known work: what launches its kernels, what they move, and its least time."""

from collections import Counter

import pandas as pd
import pytest
import torch
from torch import nn
from torch.profiler import record_function

from scaling.core.grid import CELL_KEYS, Cell
from scaling.instruments import kernel_trace
from scaling.instruments.kernel_classes import launches
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
    events = kernel_trace._exported(train, 1, Rank(0, 0, 1, torch.device("cpu")), shapes=True)
    for event in events[:]:
        if event["name"] in {f"aten::{name}" for name in COMPUTE.split()}:
            args = {"External id": event["args"]["External id"], "device": 0}
            kernel = {"cat": "kernel", "name": f"kernel {len(events)}", "ts": event["ts"]}
            events.append(kernel | {"args": args})
    return network, [next(own) for own in launches(events).values()]


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
    classes = {kind: {"seconds": 1e-3, "bytes": size} for kind, size in moved.items()}
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
