"""Seconds per epoch of every cell of a published study, from what it printed."""

import argparse
from pathlib import Path

from scaling.core.errors import run_script
from scaling.published import study as published
from scaling.published.timing import CIFAR10_TRAIN_IMAGES, published_timing
from scaling.tables import io


def main(argv: list[str] | None = None) -> None:
    """Write timing.csv: one row per cell."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True, help="folder with a timings.csv")
    parser.add_argument("--study", required=True, help="name of the study there")
    parser.add_argument(
        "--train-images",
        type=int,
        default=CIFAR10_TRAIN_IMAGES,
        help="images of its training set (default: CIFAR-10's %(default)s)",
    )
    parser.add_argument("--output", type=Path, required=True, help="timing.csv to write")
    args = parser.parse_args(argv)
    study = published.read_study(args.folder, args.study)
    io.write(published_timing(study, args.train_images), args.output)


if __name__ == "__main__":
    run_script(main)
