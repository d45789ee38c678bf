"""A network trained on the digits, quantized by the scripts as the rules run them.

Imports PyTorch and scikit-learn where it needs them: what reads the records has none.
"""

import json
import shlex
from pathlib import Path
from typing import Any

from scaling.core import command_line
from scaling.core.records.kind import DATASET
from scaling.core.records.quantization import VARIANT_PATTERN
from scaling.data import dataset

STAGES: dict[str, dict[str, Any]] = {
    "weights": {"activation_bits": None},
    "weights+activations": {"bias": "float"},
    "weights+activations+bias": {},
}
LAST = "weights+activations+bias"
SGD = {"seed": 0, "epochs": 1, "batch_size": 16, "learning_rate": 0.02, "momentum": 0.9}


def make(folder: Path) -> None:
    """Put some digits, a network trained on them for seconds, and its stages into `folder`."""
    write_images(folder, some_digits(500, 150))
    train(folder, "weights.pt", epochs=6)
    evaluate(folder, "", variants=STAGES)


def some_digits(training: int, test: int) -> dataset.ImageDataset:
    """The first images of each split."""
    from scaling.data import generated

    found = generated.digits(dataset.Request(source="digits"))[0]
    pixels = found.train_images[:training], found.train_labels[:training]
    return dataset.ImageDataset(
        *pixels, found.test_images[:test], found.test_labels[:test], found.classes
    )


def write_images(folder: Path, images: dataset.ImageDataset) -> None:
    dataset.save(images, folder / "images.npz")
    DATASET.write(folder / "manifest.json", dataset.manifest(images, "digits", "scikit-learn"))


def train(folder: Path, name: str, **changes: Any) -> None:
    import quantize_train

    outputs = {"output": folder / name, "summary": folder / f"{name}.json"}
    quantize_train.main(arguments(folder, SGD | outputs | changes))


def evaluate(folder: Path, output: str, **changes: Any) -> None:
    import quantize_evaluate

    given = {"seed": 0, "calibration_images": 0, "weights": folder / "weights.pt"}
    quantize_evaluate.main(arguments(folder, given | {"output": folder / output} | changes))


def arguments(folder: Path, given: dict[str, Any]) -> list[str]:
    """The command line with these options, `folder`'s images and the CPU."""
    found = {"dataset": str(folder / "images.npz"), "manifest": str(folder / "manifest.json")}
    texts = {key: str(value) if isinstance(value, Path) else value for key, value in given.items()}
    return shlex.split(command_line.options(found | {"device": "cpu"} | texts))


def record_path(folder: Path, variant: str = LAST) -> Path:
    return folder / VARIANT_PATTERN.format(variant=variant)


def record(folder: Path, variant: str = LAST) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(record_path(folder, variant).read_text())
    return found


def document(folder: Path, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / f"{name}.json").read_text())
    return found
