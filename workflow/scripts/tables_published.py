"""Tables of a published study: its times, what follows from them, and what it printed."""

import argparse
from pathlib import Path

from scaling.audit.derive import tables_of_published
from scaling.core.errors import run_script
from scaling.published import study as published
from scaling.published.study import CIFAR10_TRAIN_IMAGES
from scaling.tables import schema


def main(argv: list[str] | None = None) -> None:
    """Write the tables that a measured study has too, and printed.csv."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True, help="folder with a timings.csv")
    parser.add_argument("--study", required=True, help="name of the study there")
    parser.add_argument(
        "--train-images",
        type=int,
        default=CIFAR10_TRAIN_IMAGES,
        help="images of its training set (default: CIFAR-10's %(default)s)",
    )
    parser.add_argument("--tables", type=Path, required=True, help="folder of all tables")
    args = parser.parse_args(argv)
    tables = tables_of_published(published.read_study(args.folder, args.study), args.train_images)
    schema.write_all(tables, args.tables, args.study)


if __name__ == "__main__":
    run_script(main)
