"""Measures reference backends beside our quantizer: the same weights and images.

A backend makes two networks of the float network, float32 and int8, in an engine of its own, and
both are measured alike. A latency is only ever set against the same engine's float32: an engine
that is faster at everything says nothing about int8. Backends compute on the CPU and need not be
installed.
"""

import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from torch import Tensor, nn
from torch.nn import functional

from extras.bits import engines
from extras.bits.engines import Batches, Engine, Run
from scaling.core.environment import installed
from scaling.core.paired_accuracy import Classes, paired
from scaling.data.batches import Images

LATENCY_BATCHES = (1, 256)
ROUNDS = 15
ROUND_SECONDS = 0.1
"""Each round times every precision once, by calls for about this long; ratios are by round."""


@dataclass(frozen=True)
class Backend:
    """A backend: the packages it needs, and what builds its networks on so many threads."""

    packages: tuple[str, ...]
    build: Callable[[nn.Sequential, Batches, int], Engine]


Name = Literal["onnxruntime", "torchao"]
BACKENDS: dict[Name, Backend] = {
    "onnxruntime": Backend(("onnx", "onnxscript", "onnxruntime", "sympy"), engines.onnxruntime),
    "torchao": Backend(("torchao",), engines.torchao),
}


def measure(
    name: Name,
    network: nn.Sequential,
    calibration: Images,
    test: Images,
    references: dict[str, Classes],
    threads: int,
) -> dict[str, Any]:
    """Measure the backend `name` on the float `network` (CPU), for the record.

    `status` is measured, not installed or failed; the last two with a `note` and no networks. A
    backend that raises is failed, as a study owes nothing to a package that it does not require.
    `references` are the classes [n] that PyTorch's float32 and our int8 pick.
    """
    backend = BACKENDS[name]
    versions = {package: installed(package) for package in backend.packages}
    document = {"peer": name, "versions": versions, "networks": {}, "note": None}
    if missing := [package for package, found in versions.items() if found is None]:
        note = f"{', '.join(missing)} not installed"
        return document | {"status": "not installed", "note": note}
    try:
        engine = backend.build(network, calibration.batches, threads)
        networks = _networks(engine, test, references)
    except Exception as error:
        traceback.print_exc()
        first_line = next(iter(str(error).splitlines()), "")
        note = f"{type(error).__name__}: {first_line[:200]}"
        return document | {"status": "failed", "note": note}
    return document | {"status": "measured", "options": engine.options, "networks": networks}


def _networks(engine: Engine, test: Images, references: dict[str, Classes]) -> dict[str, Any]:
    seconds = {
        batch: interleaved_seconds(engine.runs, test.normalised(np.arange(batch) % len(test)))
        for batch in LATENCY_BATCHES
    }
    return {
        precision: {
            "file_bytes": engine.file_bytes[precision],
            **compared(classes(run, test), test, references),
            "seconds": {str(batch): seconds[batch][precision] for batch in LATENCY_BATCHES},
        }
        for precision, run in engine.runs.items()
    }


def classes(run: Run, test: Images) -> Classes:
    """Pick the class of each test image by `run`: int64 [n]; the first of equal logits.

    Every call has the largest latency batch, the last one filled up with zeros: an engine compiles
    for a fixed batch size once.
    """
    size = LATENCY_BATCHES[-1]
    picked = []
    for start in range(0, len(test), size):
        batch = test.normalised(slice(start, start + size))
        filled = functional.pad(batch, (0, 0, 0, 0, 0, 0, 0, size - len(batch)))
        picked.append(run(filled)[: len(batch)].argmax(dim=1).numpy())
    return np.concatenate(picked)


def compared(picked: Classes, test: Images, references: dict[str, Classes]) -> dict[str, Any]:
    """Compare the classes `picked` with PyTorch's float32 (`paired_accuracy`) and with our int8."""
    same = int((picked == references["int8"]).sum())
    found = paired(test.labels, references["float32"], picked)
    return found | {"agreement_ours_percent": 100 * same / len(test)}


def interleaved_seconds(
    runs: dict[str, Run], images: Tensor, round_seconds: float = ROUND_SECONDS
) -> dict[str, list[float]]:
    """Time each of `runs` on `images`: seconds per call, one figure per round of `round_seconds`.

    In each round every one of them has its turn, so that a machine that becomes slower does so
    for all. The first call, which may compile, is not timed; nor is the first of each round.
    """

    def timed(run: Run, calls: int) -> float:
        run(images)
        start = time.perf_counter()
        for _ in range(calls):
            run(images)
        return (time.perf_counter() - start) / calls

    calls = {name: max(1, round(round_seconds / timed(run, 1))) for name, run in runs.items()}
    rounds = [{name: timed(run, calls[name]) for name, run in runs.items()} for _ in range(ROUNDS)]
    return {name: [seconds[name] for seconds in rounds] for name in runs}
