"""Quantize the trained tutorial CNN by other quantizers too, and measure them beside ours.

Each engine's int8 is timed against its own float32, in turns, in this one process and on the CPU.
A peer whose packages are not installed is noted and left out: see requirements-peers.txt.
"""

import argparse
from pathlib import Path

import torch

from scaling.config.scheme import Scheme
from scaling.core import environment, files
from scaling.core.errors import run_script
from scaling.data.batches import read_images
from scaling.models.tutorial_cnn import load_weights
from scaling.quantization import backends as peers
from scaling.quantization import variant
from scaling.quantization.integers import WORD_BYTES, layer_bytes
from scaling.quantization.training import predict


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dataset", type=Path, required=True, help="images.npz of the dataset")
    parser.add_argument("--manifest", type=Path, required=True, help="manifest.json beside it")
    parser.add_argument("--weights", type=Path, required=True, help="what quantize_train.py wrote")
    parser.add_argument("--seed", type=int, required=True, help="of that training")
    parser.add_argument(
        "--calibration-images",
        type=int,
        required=True,
        help="how many training images to calibrate on, 0 for all; ours draws the same",
    )
    parser.add_argument(
        "--peers", nargs="+", choices=list(peers.BACKENDS), required=True, help="which to measure"
    )
    parser.add_argument("--threads", type=int, default=1, help="of every engine (default: 1)")
    parser.add_argument("--output", type=Path, required=True, help="peers.json to write")
    options = parser.parse_args(argv)

    surroundings = environment.describe("cpu")
    torch.set_num_threads(options.threads)
    network = load_weights(options.weights)
    training, test, identity = read_images(options.dataset, options.manifest, torch.device("cpu"))
    chosen = training.sample(options.calibration_images, options.seed)
    ours = variant.make(network, Scheme(), chosen, test, options.seed)
    references = {"float32": predict(network, test), "int8": predict(ours.network, test)}
    sizes = {
        "float32": 4 * sum(parameter.numel() for parameter in network.parameters()),
        "int8": WORD_BYTES + sum(layer_bytes(each.weight, 8, 1) for each in ours.rounded.values()),
    }
    documents = []
    for name in options.peers:
        document = peers.measure(name, network, chosen, test, references, options.threads)
        print(f"{name}: {document['status']}, {document['note'] or document['options']}")
        documents.append(document)
    files.write_json(
        options.output,
        {
            "seed": options.seed,
            "dataset": identity,
            "calibration_images": len(chosen),
            "test_images": len(test),
            "threads": options.threads,
            "ours": {
                precision: {
                    "file_bytes": sizes[precision],
                    **peers.compared(picked, test, references),
                }
                for precision, picked in references.items()
            },
            "peers": documents,
            "environment": {**surroundings, "ended": environment.now()},
        },
    )


if __name__ == "__main__":
    run_script(main)
