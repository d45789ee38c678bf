"""A network that is trained on the digits, and then quantized by the rules' script."""

from pathlib import Path
from typing import Any

import numpy as np
import torch

import quantize
from scaling.core import code_digest, environment, files
from scaling.core.records.kind import DATASET, VARIANT_PATTERN
from scaling.data import dataset, generated
from scaling.models.tutorial_cnn import save_weights, tutorial_cnn

LAST = "weights+activations+bias"
STAGES: dict[str, dict[str, Any]] = {"weights": {"activation_bits": None}}
STAGES |= {"weights+activations": {"bias": "float"}, LAST: {}}
SGD = {"seed": 0, "epochs": 1, "batch_size": 16, "learning_rate": 0.02, "momentum": 0.9}


def make(folder: Path) -> None:
    """Write digits, a network trained on them, and its quantized variants to `folder`.

    The weights are stored files, because trained weights differ between processors and numbers of
    threads. They are those of `train(folder, name, epochs=15)`, in half precision.
    """
    write_images(folder, 500, 150)
    network, weights = tutorial_cnn(), np.load(Path(__file__).with_suffix(".npz"))
    network.load_state_dict({name: torch.from_numpy(weights[name]).float() for name in weights})
    save_weights(network, folder / "weights.pt")
    evaluate(folder, "", variants=STAGES)


def write_images(folder: Path, training: int, test: int) -> None:
    """Write the first digits of each split to `folder`."""
    found = generated.digits(dataset.Request(source="digits"))[0]
    first = found.train_images[:training], found.train_labels[:training]
    last = found.test_images[:test], found.test_labels[:test]
    images = dataset.ImageDataset(*first, *last, found.classes)
    dataset.save(images, folder / "images.npz")
    DATASET.write(folder / "manifest.json", dataset.manifest(images, "digits", "scikit-learn"))


def train(folder: Path, name: str, **changes: Any) -> None:
    """Train a network on the images in `folder`, and write its weights there."""
    run("training", folder, SGD | {"output": folder / name} | changes)


def evaluate(folder: Path, output: str, **changes: Any) -> None:
    """Quantize the network in `folder`, and evaluate it on the images there."""
    given = {"seed": 0, "calibration_images": 0, "weights": folder / "weights.pt"}
    run("evaluation", folder, given | {"output": folder / output} | changes)


def run(what: str, folder: Path, given: dict[str, Any]) -> None:
    data = {"dataset": folder / "images.npz", "manifest": folder / "manifest.json"}
    quantize.main(**{what: data | {"device": "cpu"} | given})


def record(folder: Path, variant: str = LAST) -> Any:
    return files.read_json(folder / VARIANT_PATTERN.format(variant=variant))


def assert_made_here(surroundings: dict[str, Any]) -> None:
    """Check that this code wrote the record just now, on this machine's CPU."""
    here, code = environment.describe("cpu"), code_digest.described(*quantize.CODE)
    made = {key: surroundings[key] for key in ("commit", "started", "ended")}
    assert surroundings == here | code | made
    assert surroundings["started"] < surroundings["ended"] <= here["started"]
    # A commit made while the tests run is no fault; without git there is none to name.
    assert (surroundings["commit"] is None) == (here["commit"] is None)
