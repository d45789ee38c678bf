"""A network trained on the digits, quantized by the scripts as the rules run them."""

import json
from pathlib import Path
from typing import Any

import quantize_evaluate
import quantize_train
from scaling.core import files
from scaling.data import dataset, digits

STAGES: dict[str, dict[str, Any]] = {
    "weights": {"activation_bits": None},
    "weights+activations": {"bias": "float"},
    "weights+activations+bias": {},
}
LAST = "weights+activations+bias"


def make(folder: Path) -> None:
    """Put the digits, a network trained on them for a few seconds, and its stages into `folder`."""
    images = digits.read()[0]
    dataset.save(images, folder / "images.npz")
    files.write_json(folder / "manifest.json", dataset.manifest(images, "digits", "scikit-learn"))
    train(folder, "weights.pt", epochs=5)
    for name, scheme in STAGES.items():
        evaluate(folder, f"{name}.json", name, scheme, histograms=name == LAST)


def train(folder: Path, name: str, **changes: Any) -> None:
    options = {"seed": 0, "epochs": 1, "batch-size": 32, "learning-rate": 0.02, "momentum": 0.9}
    options |= {key.replace("_", "-"): value for key, value in changes.items()}
    named = [text for key, value in options.items() for text in (f"--{key}", str(value))]
    output = ["--output", str(folder / name), "--summary", str(folder / f"{name}.json")]
    quantize_train.main([*images_of(folder), *named, *output])


def evaluate(
    folder: Path,
    output: str,
    variant: str = LAST,
    scheme: dict[str, Any] | None = None,
    *,
    calibration_images: int = 0,
    seed: int = 0,
    histograms: bool = False,
) -> None:
    quantize_evaluate.main(
        [
            *images_of(folder),
            *("--weights", str(folder / "weights.pt"), "--seed", str(seed)),
            *("--variant", variant, "--scheme", json.dumps(scheme or {})),
            *("--calibration-images", str(calibration_images), "--output", str(folder / output)),
            *(["--histograms"] if histograms else []),
        ]
    )


def images_of(folder: Path) -> list[str]:
    paths = "--dataset", str(folder / "images.npz"), "--manifest", str(folder / "manifest.json")
    return [*paths, "--device", "cpu"]


def document(folder: Path, variant: str = LAST) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / f"{variant}.json").read_text())
    return found
