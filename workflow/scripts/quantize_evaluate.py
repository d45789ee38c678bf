"""Quantize the trained tutorial CNN one way, and measure all that it costs."""

import argparse
import json
from pathlib import Path
from typing import Any

import torch

from scaling.config.scheme import Scheme
from scaling.core import environment, files
from scaling.core.errors import UserError, run_script
from scaling.data.batches import read_images
from scaling.models.tutorial_cnn import load_weights
from scaling.quantization import variant as quantized_variant
from scaling.quantization.layer_statistics import distributions
from scaling.quantization.training import pick_device


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dataset", type=Path, required=True, help="images.npz of the dataset")
    parser.add_argument("--manifest", type=Path, required=True, help="manifest.json beside it")
    parser.add_argument("--weights", type=Path, required=True, help="what quantize_train.py wrote")
    parser.add_argument(
        "--seed",
        type=int,
        required=True,
        help="of that training; also draws the calibration images",
    )
    parser.add_argument("--variant", required=True, help="what to call the variant")
    parser.add_argument(
        "--scheme",
        type=json.loads,
        default={},
        metavar="JSON",
        help="its options where they differ from int8 weights, activations and logits with one "
        'scale for each tensor, and int32 biases: {"weight_bits": 4, "rounding": "gptq"}; '
        f"there are {', '.join(Scheme.model_fields)}",
    )
    parser.add_argument(
        "--calibration-images",
        type=int,
        required=True,
        help="how many training images to calibrate on, 0 for all",
    )
    parser.add_argument(
        "--histograms",
        action="store_true",
        help="also count how the weights and activations are distributed",
    )
    parser.add_argument(
        "--device",
        choices=["auto", "cpu", "cuda"],
        default="auto",
        help="where to compute; auto (the default) is CUDA where there is one",
    )
    parser.add_argument("--output", type=Path, required=True, help="quantization.json to write")
    options = parser.parse_args(argv)

    scheme = Scheme.of(options.scheme)
    if options.histograms and not scheme.has_histograms:
        raise UserError(
            f"--histograms: {options.variant} has no int8 activations, logits and weights with one "
            "scale for each tensor; choose a variant that has"
        )
    # TF32 keeps 10 bits of a float32: "float32" would not be what the other stages are held to.
    torch.backends.cudnn.allow_tf32 = False
    device = pick_device(options.device)
    surroundings = environment.describe_process(device)
    network = load_weights(options.weights).to(device)
    training, test, identity = read_images(options.dataset, options.manifest, device)
    chosen = training.sample(options.calibration_images, options.seed)
    variant = quantized_variant.make(network, scheme, chosen, test, options.seed)
    found = quantized_variant.measure(network, variant, chosen, test)
    record = {
        "seed": options.seed,
        "variant": options.variant,
        "scheme": scheme.as_options(),
        "device": device.type,
        "dataset": identity,
        **found,
    }
    if options.histograms:
        record["histograms"] = distributions(network, variant.network, test.batches())
    record["environment"] = {**surroundings, "ended": environment.now()}
    files.write_json(options.output, record)
    print(_sentence(record))


def _sentence(record: dict[str, Any]) -> str:
    exactness = record["exactness"]
    checked = (
        "no integer pipeline, as activations are floats"
        if exactness is None
        else f"{exactness['differing']} of {exactness['logits']} logits differ from those computed "
        "in integers"
    )
    return (
        f"{record['variant']}: accuracy {record['accuracy_percent']:.2f} %, "
        f"{record['difference_points']:+.2f} ± {record['standard_error_points']:.2f} points to "
        f"float32, agreement {record['agreement_percent']:.2f} %, "
        f"{record['float32_bytes'] / record['packed_bytes']:.2f} times smaller; {checked}"
    )


if __name__ == "__main__":
    run_script(main)
