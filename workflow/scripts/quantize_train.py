"""Train the tutorial CNN that every quantization stage is made from."""

import argparse
from dataclasses import asdict
from pathlib import Path

from scaling.core import environment, files
from scaling.core.errors import run_script
from scaling.data.batches import read_images
from scaling.models.tutorial_cnn import save_weights
from scaling.quantization.training import EpochResult, pick_device, predict, train


def print_epoch(result: EpochResult) -> None:
    print(
        f"epoch {result.epoch}: training loss {result.train_loss:.4f}, "
        f"accuracy {result.train_accuracy:.2%}",
        flush=True,
    )


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dataset", type=Path, required=True, help="images.npz of the dataset")
    parser.add_argument("--manifest", type=Path, required=True, help="manifest.json beside it")
    parser.add_argument("--seed", type=int, required=True, help="of first weights and image order")
    parser.add_argument("--epochs", type=int, required=True, help="passes over the training images")
    parser.add_argument("--batch-size", type=int, required=True, help="images per update")
    parser.add_argument("--learning-rate", type=float, required=True, help="of plain SGD, constant")
    parser.add_argument("--momentum", type=float, required=True, help="of SGD, 0 for none")
    parser.add_argument(
        "--device",
        choices=["auto", "cpu", "cuda"],
        default="auto",
        help="where to compute; auto (the default) is CUDA where there is one",
    )
    parser.add_argument("--output", type=Path, required=True, help="weights.pt to write")
    parser.add_argument("--summary", type=Path, required=True, help="summary.json to write")
    options = parser.parse_args(argv)

    device = pick_device(options.device)
    surroundings = environment.describe_process(device)
    training, test, identity = read_images(options.dataset, options.manifest, device)
    chosen = {
        key: getattr(options, key)
        for key in ("seed", "epochs", "batch_size", "learning_rate", "momentum")
    }
    network, epochs = train(training, **chosen, report=print_epoch)
    parameters = sum(parameter.numel() for parameter in network.parameters())
    right = int((predict(network, test) == test.labels).sum())
    save_weights(network, options.output)
    files.write_json(
        options.summary,
        {
            "training": chosen,
            "device": device.type,
            "dataset": identity,
            "parameters": parameters,
            "train_images": len(training),
            "test_images": len(test),
            "epochs": [asdict(epoch) for epoch in epochs],
            "test_accuracy": right / len(test),
            "environment": {**surroundings, "ended": environment.now()},
        },
    )
    print(
        f"tutorial CNN, {parameters:,} parameters, seed {options.seed}: {right} of {len(test)} "
        f"test images right ({right / len(test):.2%}) after {options.epochs} epochs"
    )


if __name__ == "__main__":
    run_script(main)
