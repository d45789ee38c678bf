"""Run the trained tutorial CNN through the four stages of int8 quantization."""

import argparse
from pathlib import Path

import torch

from scaling import files
from scaling.calibration import calibrate
from scaling.errors import run_script
from scaling.quantization_histograms import distributions
from scaling.quantization_stages import compare, ledger, stages
from scaling.tutorial_cnn import load_weights
from scaling.tutorial_images import read_images
from scaling.tutorial_training import pick_device


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
    parser.add_argument(
        "--calibration-images",
        type=int,
        required=True,
        help="how many training images to calibrate on, 0 for all",
    )
    parser.add_argument(
        "--device",
        choices=["auto", "cpu", "cuda"],
        default="auto",
        help="where to compute; auto (the default) is CUDA where there is one",
    )
    parser.add_argument("--output", type=Path, required=True, help="stages.json to write")
    options = parser.parse_args(argv)

    # TF32 keeps 10 bits of a float32: "float32" would not be what the other stages are held to.
    torch.backends.cudnn.allow_tf32 = False
    device = pick_device(options.device)
    network = load_weights(options.weights).to(device)
    training, test, identity = read_images(options.dataset, options.manifest, device)
    chosen = training.sample(options.calibration_images, options.seed)
    calibration = calibrate(network, chosen.batches())
    networks = stages(network, calibration)
    results = compare(networks, test)
    quantized = networks["weights+activations+bias"]
    files.write_json(
        options.output,
        {
            "seed": options.seed,
            "device": device.type,
            "dataset": identity,
            "calibration_images": len(chosen),
            "test_images": len(test),
            "stages": results,
            **ledger(network, quantized, calibration),
            "histograms": distributions(network, quantized, test),
        },
    )
    for row in results:
        print(
            f"{row['stage']:24}  accuracy {row['accuracy_percent']:6.2f} %  "
            f"difference {row['difference_points']:+6.2f} points  "
            f"agreement {row['agreement_percent']:6.2f} %"
        )


if __name__ == "__main__":
    run_script(main)
