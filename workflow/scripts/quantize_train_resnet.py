"""Train the ResNet-18 that is quantized: the study's model, recipe `course`, one GPU.

The runs of the grid keep times and no weights, so this is a training of its own.
"""

import argparse
import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch

from scaling.core import environment, files
from scaling.core.errors import UserError, run_script
from scaling.core.grid import Cell
from scaling.data import dataset
from scaling.launch.ranks import Rank
from scaling.launch.run_spec import RunSpec
from scaling.models.resnet import ResNet18
from scaling.models.tutorial_cnn import save_weights
from scaling.quantization.training import pick_device
from scaling.training import evaluation
from scaling.training.course import Course
from scaling.training.trainer import TrainingData


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--dataset", type=Path, required=True, help="images.npz of the dataset")
    add("--manifest", type=Path, required=True, help="manifest.json beside it")
    add("--seed", type=int, required=True, help="of initial weights, order, augmentation")
    add("--device", choices=["auto", "cpu", "cuda"], default="auto", help="default: auto")
    add("--model-width", type=int, required=True, help="channels of the first stage")
    add("--epochs", type=int, required=True, help="passes over the training images")
    add("--batch-size", type=int, required=True, help="images per update")
    add("--learning-rate", type=float, required=True, help="of SGD, constant")
    add("--momentum", type=float, required=True, help="of SGD, 0 for none")
    add("--weight-decay", type=float, required=True, help="of SGD")
    add("--crop-padding", type=int, required=True, help="pixels around a random crop")
    add("--horizontal-flip", choices=["yes", "no"], required=True, help="flip half of the images")
    add("--recipe-options", type=json.loads, required=True, help="of recipe course, JSON")
    add("--output", type=Path, required=True, help="weights to write")
    add("--summary", type=Path, required=True, help="summary.json to write")
    return parser.parse_args(argv)


def spec_from(args: argparse.Namespace) -> RunSpec:
    """The run as a cell of the grid on one GPU; limits of time do not apply."""
    return RunSpec(
        cell=Cell("course", "ddp", 1, args.batch_size, args.seed),
        device=environment.resolve_device(args.device),
        model_width=args.model_width,
        warmup_epochs=0,
        measured_epochs=args.epochs,
        instrumented_iterations=0,
        learning_rate=args.learning_rate,
        momentum=args.momentum,
        weight_decay=args.weight_decay,
        crop_padding=args.crop_padding,
        horizontal_flip=args.horizontal_flip == "yes",
        recipe_options=args.recipe_options,
        cpu_threads=torch.get_num_threads(),
        time_limit_seconds=0,
        collective_timeout_seconds=0,
    )


def main(argv: list[str] | None = None) -> None:
    args = parse(argv)
    spec, device = spec_from(args), pick_device(args.device)
    surroundings = environment.describe_process(device)
    described = files.read_json(args.manifest)
    statistics = (np.array(described[key]) for key in ("mean", "std"))
    material = TrainingData(dataset.load(args.dataset), *statistics)
    torch.manual_seed(args.seed)
    network = ResNet18(args.model_width, len(material.data.classes)).to(device)
    trainer = Course(spec, Rank(0, 0, 1, device), network, material)
    epochs = []
    for epoch in range(1, args.epochs + 1):
        result = trainer.run_epoch(epoch)
        if result.train_loss is None:
            raise UserError(
                f"training diverged in epoch {epoch}; lower --learning-rate, now "
                f"{args.learning_rate}"
            )
        epochs.append({"epoch": epoch, **asdict(result)})
        print(f"epoch {epoch}: training loss {result.train_loss:.4f}", flush=True)
    test = evaluation.evaluate(network, material, device)
    save_weights(network, args.output)
    files.write_json(
        args.summary,
        {
            "training": spec.parameters() | {"seed": args.seed, "batch_size": args.batch_size},
            "dataset": {key: described[key] for key in ("source", "checksum")},
            "epochs": epochs,
            "evaluation": test,
            "environment": {**surroundings, "ended": environment.now()},
        },
    )


if __name__ == "__main__":
    run_script(main)
