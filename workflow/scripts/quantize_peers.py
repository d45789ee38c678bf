"""Quantize the trained tutorial CNN by reference backends, and measure them beside ours.

Each engine's int8 is timed against its own float32, in turns, in this one process and on the CPU.
A backend whose packages are not installed is noted and left out: see requirements-peers.txt.
"""

from dataclasses import dataclass
from pathlib import Path

import torch

from scaling.config.scheme import Scheme
from scaling.core import command_line, environment, files
from scaling.core.errors import run_script
from scaling.data.batches import read_images
from scaling.models.tutorial_cnn import load_weights
from scaling.quantization import backends, variant
from scaling.quantization.rounding import WORD_BYTES
from scaling.quantization.training import predict


@dataclass(frozen=True)
class Command:
    """One network, the backends that quantize it, and where their record goes."""

    dataset: Path
    """images.npz, made by dataset_prepare.py."""
    manifest: Path
    """Its manifest.json."""
    weights: Path
    """What quantize_train.py wrote for the tutorial CNN."""
    seed: int
    """Of that training; draws the calibration images."""
    calibration_images: int
    """Training images to calibrate on, 0 for all; ours draws the same."""
    peers: list[backends.Name]
    """Which to measure."""
    output: Path
    """peers.json to write."""
    threads: int = 1
    """Of every engine."""


def main(argv: list[str] | None = None) -> None:
    command = command_line.parse(Command, argv)
    surroundings = environment.describe("cpu")
    torch.set_num_threads(command.threads)
    network = load_weights(command.weights)
    training, test, identity = read_images(command.dataset, command.manifest, torch.device("cpu"))
    chosen = training.sample(command.calibration_images, command.seed)
    ours = variant.make(network, Scheme(), chosen, test, command.seed)
    references = {"float32": predict(network, test), "int8": predict(ours.network, test)}
    sizes = {
        "float32": 4 * sum(parameter.numel() for parameter in network.parameters()),
        "int8": WORD_BYTES + sum(each.packed_bytes(8) for each in ours.rounded.values()),
    }
    documents = []
    for name in command.peers:
        document = backends.measure(name, network, chosen, test, references, command.threads)
        print(f"{name}: {document['status']}, {document['note'] or document['options']}")
        documents.append(document)
    files.write_json(
        command.output,
        {
            "seed": command.seed,
            "dataset": identity,
            "calibration_images": len(chosen),
            "test_images": len(test),
            "threads": command.threads,
            "ours": {
                precision: {
                    "file_bytes": sizes[precision],
                    **backends.compared(picked, test, references),
                }
                for precision, picked in references.items()
            },
            "peers": documents,
            "environment": {**surroundings, "ended": environment.now()},
        },
    )


if __name__ == "__main__":
    run_script(main)
