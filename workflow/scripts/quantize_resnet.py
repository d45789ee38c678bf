"""Run the trained ResNet-18 through the four stages of int8 quantization."""

import argparse
from pathlib import Path

import torch

from scaling.core import environment, files
from scaling.core.errors import run_script
from scaling.data.batches import read_images
from scaling.models.resnet import ResNet18
from scaling.models.tutorial_cnn import load_into
from scaling.quantization.resnet_stages import evaluate
from scaling.quantization.training import pick_device


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--dataset", type=Path, required=True, help="images.npz of the dataset")
    add("--manifest", type=Path, required=True, help="manifest.json beside it")
    add("--weights", type=Path, required=True, help="what quantize_train_resnet.py wrote")
    add("--model-width", type=int, required=True, help="channels of its first stage")
    add("--seed", type=int, required=True, help="of that training; draws the calibration images")
    add(
        "--calibration-images",
        type=int,
        required=True,
        help="how many training images to calibrate on, 0 for all",
    )
    add("--device", choices=["auto", "cpu", "cuda"], default="auto", help="default: auto")
    add("--output", type=Path, required=True, help="resnet.json to write")
    options = parser.parse_args(argv)

    # TF32 keeps 10 bits of a float32; sums of integers must stay integers.
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.matmul.allow_tf32 = False
    device = pick_device(options.device)
    surroundings = environment.describe_process(device)
    training, test, identity = read_images(options.dataset, options.manifest, device)
    classes = len(files.read_json(options.manifest)["classes"])
    network = ResNet18(options.model_width, classes)
    load_into(network, options.weights, f"a ResNet-18 of width {options.model_width}", TRAINED_BY)
    chosen = training.sample(options.calibration_images, options.seed)
    found = evaluate(network.to(device).eval(), chosen, test)
    files.write_json(
        options.output,
        {
            "seed": options.seed,
            "device": device.type,
            "dataset": identity,
            "model_width": options.model_width,
            "calibration_images": len(chosen),
            **found,
            "environment": {**surroundings, "ended": environment.now()},
        },
    )
    for row in found["stages"]:
        print(
            f"{row['stage']:24} {row.get('weight_scales', ''):8} "
            f"accuracy {row['accuracy_percent']:6.2f} %  "
            f"difference {row['difference_points']:+6.2f} points  "
            f"agreement {row['agreement_percent']:6.2f} %"
        )


TRAINED_BY = "quantize_train_resnet.py"

if __name__ == "__main__":
    run_script(main)
