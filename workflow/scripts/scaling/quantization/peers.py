"""Other quantizers beside ours: the same weights, calibration images and test images.

A peer turns the float network into two networks of its own engine, float32 and int8, and both are
measured alike. A latency is only ever set against the same engine's float32: an engine that is
faster at everything says nothing about int8. Peers compute on the CPU and need not be installed.
"""

import time
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from scaling.data.batches import Images
from scaling.quantization import peer_onnxruntime, peer_torchao
from scaling.quantization.compare import paired
from scaling.quantization.peer import Batches, Peer, Run

LATENCY_BATCHES = (1, 256)
ROUNDS = 15
ROUND_SECONDS = 0.1
"""Each round times every precision once, by calls for about this long; ratios are by round."""

Builder = Callable[[nn.Sequential, Batches, int], Peer]


@dataclass(frozen=True)
class Choice:
    """A peer by name: the packages it needs, and what builds its networks."""

    packages: tuple[str, ...]
    build: Builder


PEERS = {
    "onnxruntime": Choice(("onnx", "onnxscript", "onnxruntime", "sympy"), peer_onnxruntime.build),
    "torchao": Choice(("torchao",), peer_torchao.build),
}


def versions(packages: Iterable[str]) -> dict[str, str | None]:
    """The installed version of each package, None where it is not installed."""
    found: dict[str, str | None] = {}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = None
    return found


def measure(
    name: str,
    network: nn.Sequential,
    calibration: Images,
    test: Images,
    references: dict[str, Tensor],
    threads: int,
) -> dict[str, Any]:
    """The peer `name` on the float `network` (CPU): what the record holds of it.

    `status` is measured, not installed or failed; the last two with a `note` and no networks. A
    peer that raises is failed, as a study owes nothing to a package that it does not require.
    `references` are the classes int64 [n] that PyTorch's float32 and our int8 pick.
    """
    choice = PEERS[name]
    found = versions(choice.packages)
    document: dict[str, Any] = {"peer": name, "versions": found, "networks": {}, "note": None}
    missing = [package for package, installed in found.items() if installed is None]
    if missing:
        note = f"{', '.join(missing)} not installed"
        return {**document, "status": "not installed", "note": note}
    try:
        peer = choice.build(network, calibration.batches, threads)
        networks = _networks(peer, test, references)
    except Exception as error:
        traceback.print_exc()
        first_line = (str(error).splitlines() or [""])[0]
        note = f"{type(error).__name__}: {first_line[:200]}"
        return {**document, "status": "failed", "note": note}
    return {**document, "status": "measured", "options": peer.options, "networks": networks}


def _networks(peer: Peer, test: Images, references: dict[str, Tensor]) -> dict[str, Any]:
    seconds = {
        batch: interleaved_seconds(peer.runs, test.normalised(np.arange(batch) % len(test)))
        for batch in LATENCY_BATCHES
    }
    return {
        precision: {
            "file_bytes": peer.file_bytes[precision],
            **compared(classes(run, test), test, references),
            "seconds": {str(batch): seconds[batch][precision] for batch in LATENCY_BATCHES},
        }
        for precision, run in peer.runs.items()
    }


def classes(run: Run, test: Images) -> Tensor:
    """The class that `run` picks for each test image, int64 [n]; the first of equal logits.

    Every call has the largest latency batch, the last one filled up with zeros: an engine compiles
    for a fixed batch size once.
    """
    size = LATENCY_BATCHES[-1]
    picked = []
    for start in range(0, len(test), size):
        batch = test.normalised(slice(start, start + size))
        filled = functional.pad(batch, (0, 0, 0, 0, 0, 0, 0, size - len(batch)))
        picked.append(run(filled)[: len(batch)].argmax(dim=1))
    return torch.cat(picked)


def compared(picked: Tensor, test: Images, references: dict[str, Tensor]) -> dict[str, Any]:
    """The classes `picked` beside PyTorch's float32 (see `paired_accuracy`), and beside our int8.

    `agreement_ours_percent` is the share of images that our int8 puts in the same class.
    """
    labels = torch.from_numpy(test.labels)
    same = int((picked == references["int8"]).sum())
    return {
        **paired(labels, references["float32"], picked),
        "agreement_ours_percent": 100 * same / len(test),
    }


def interleaved_seconds(runs: dict[str, Run], images: Tensor) -> dict[str, list[float]]:
    """Seconds per call of each of `runs` on `images`, one figure per round.

    In each round every one of them has its turn, so that a machine that becomes slower does so
    for all. The first call, which may compile, is not timed; nor is the first of each round.
    """
    calls = {}
    for name, run in runs.items():
        run(images)
        start = time.perf_counter()
        run(images)
        calls[name] = max(1, round(ROUND_SECONDS / (time.perf_counter() - start)))
    found: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(ROUNDS):
        for name, run in runs.items():
            run(images)
            start = time.perf_counter()
            for _ in range(calls[name]):
                run(images)
            found[name].append((time.perf_counter() - start) / calls[name])
    return found
