"""Quantize the trained tutorial CNN by other backends, and compare them with ours.

Each backend's int8 is timed against its own float32, alternately, in this process on the CPU. A
backend whose packages are not installed is noted and left out: see requirements-peers.txt.
"""

from pathlib import Path

import torch

from extras.bits import comparison
from scaling.config.scheme import Scheme
from scaling.core import command_line, environment
from scaling.core.records.quantization import BACKENDS
from scaling.data.batches import read_images
from scaling.launch import lease
from scaling.models.tutorial_cnn import load_weights
from scaling.quantization import variant
from scaling.quantization.rounding import WORD_BYTES
from scaling.quantization.training import predict


@command_line.script
def main(
    dataset: Path,
    manifest: Path,
    weights: Path,
    seed: int,
    calibration_images: int,
    peers: list[comparison.Name],
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
    ours = variant.make(network, Scheme(), chosen, test, seed)
    references = {"float32": predict(network, test), "int8": predict(ours.network, test)}
    sizes = {
        "float32": 4 * sum(parameter.numel() for parameter in network.parameters()),
        "int8": WORD_BYTES + sum(each.packed_bytes(8) for each in ours.rounded.values()),
    }
    documents = []
    with lease.cpu():
        for name in peers:
            document = comparison.measure(name, network, chosen, test, references, threads)
            print(f"{name}: {document['status']}, {document['note'] or document['options']}")
            documents.append(document)
    BACKENDS.write(
        output,
        {
            "seed": seed,
            "dataset": identity,
            "calibration_images": len(chosen),
            "test_images": len(test),
            "threads": threads,
            "ours": {
                precision: {
                    "file_bytes": sizes[precision],
                    **comparison.compared(picked, test, references),
                }
                for precision, picked in references.items()
            },
            "peers": documents,
            "environment": {**host_info, "ended": environment.now()},
        },
    )
