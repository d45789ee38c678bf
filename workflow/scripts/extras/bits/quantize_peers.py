"""Quantize the trained tutorial CNN by other backends, and compare them with ours.

A backend makes two networks of the float network, float32 and int8, in an engine of its own, and
both are measured alike, alternately, in this process on the CPU. A latency is only ever set against
the same engine's float32: an engine that is faster at everything says nothing about int8. A backend
whose packages are not installed is noted and left out: see requirements-peers.txt.
"""

import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import nn

from extras.bits import engines
from extras.bits.engines import LATENCY_BATCHES, Batches, Networks, compared
from scaling.config.scheme import Scheme
from scaling.core import command_line, environment
from scaling.core.paired_accuracy import Classes
from scaling.core.records.quantization import BACKENDS
from scaling.data.batches import Images, read_images
from scaling.launch import lease
from scaling.models.tutorial_cnn import load_weights
from scaling.quantization import variant
from scaling.quantization.commands import attempted
from scaling.quantization.rounding import WORD_BYTES
from scaling.quantization.training import predict


class Backend(NamedTuple):
    """The packages of a backend, its choices, and what builds its networks on so many threads."""

    packages: tuple[str, ...]
    options: str
    build: Callable[[nn.Sequential, Batches, int], Networks]


Name = Literal["onnxruntime", "torchao"]
PEERS: dict[Name, Backend] = {
    "onnxruntime": Backend(
        ("onnx", "onnxruntime", "sympy"),
        "QDQ format, weights int8 symmetric per tensor, activations int8 with zero point per "
        "tensor, min-max calibration",
        engines.onnxruntime,
    ),
    "torchao": Backend(
        ("torchao",),
        "PT2E with the X86 Inductor quantizer's own choices: weights int8 symmetric per channel, "
        "activations uint8 with zero point per tensor, histogram calibration; torch.compile with "
        "freezing",
        engines.torchao,
    ),
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
    backend = PEERS[name]
    versions = {package: environment.installed(package) for package in backend.packages}
    document = {"peer": name, "versions": versions, "networks": {}, "note": None}
    if missing := [package for package, found in versions.items() if found is None]:
        note = f"{', '.join(missing)} not installed"
        return document | {"status": "not installed", "note": note}
    try:
        built = backend.build(network, calibration.batches, threads)
        runs = {precision: run for precision, (run, _) in built.items()}
        seconds = {
            batch: engines.interleaved_seconds(runs, test.normalised(np.arange(batch) % len(test)))
            for batch in LATENCY_BATCHES
        }
        networks = {
            precision: {
                "file_bytes": file_bytes,
                **compared(engines.computed(run, test).argmax(axis=1), test, references),
                "seconds": {str(batch): seconds[batch][precision] for batch in LATENCY_BATCHES},
            }
            for precision, (run, file_bytes) in built.items()
        }
    except Exception as error:
        traceback.print_exc()
        first_line = next(iter(str(error).splitlines()), "")
        note = f"{type(error).__name__}: {first_line[:200]}"
        return document | {"status": "failed", "note": note}
    return document | {"status": "measured", "options": backend.options, "networks": networks}


@command_line.script
def main(
    dataset: Path,
    manifest: Path,
    weights: Path,
    seed: int,
    calibration_images: int,
    peers: list[Name],
    output: Path,
    threads: int = 1,
) -> None:
    """Write peers.json of the `weights` that quantize_train.py wrote for `seed`.

    Calibrates on `calibration_images` training images, 0 for all, the same as ours.
    """
    host_info = environment.describe("cpu")
    torch.set_num_threads(threads)
    network = load_weights(weights)
    training, test, identity = read_images(dataset, manifest, torch.device("cpu"))
    chosen = training.sample(calibration_images, seed)
    references = {"float32": predict(network, test)}
    sizes = {"float32": 4 * sum(parameter.numel() for parameter in network.parameters())}
    ours = attempted(partial(variant.make, network, Scheme(), chosen, test, seed))
    if not isinstance(ours, str):
        references["int8"] = predict(ours.network, test)
        sizes["int8"] = WORD_BYTES + sum(each.packed_bytes(8) for each in ours.rounded.values())
    documents = []
    with lease.cpu():
        for name in peers:
            document = measure(name, network, chosen, test, references, threads)
            print(f"{name}: {document['status']}, {document['note'] or document['options']}")
            documents.append(document)
    record = {
        "seed": seed,
        "dataset": identity,
        "calibration_images": len(chosen),
        "test_images": len(test),
        "threads": threads,
        "ours": {
            precision: {"file_bytes": sizes[precision], **compared(picked, test, references)}
            for precision, picked in references.items()
        },
        "peers": documents,
        "environment": {**host_info, "ended": environment.now()},
    }
    if isinstance(ours, str):
        record["left_out"] = [{"stage": "int8", "reason": ours}]
    BACKENDS.write(output, record)
