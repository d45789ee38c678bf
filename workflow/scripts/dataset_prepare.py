"""Turn a fetched image source into the study's dataset: one .npz of arrays, and its manifest."""

import argparse
from pathlib import Path

from scaling.core import files
from scaling.core.errors import UserError, run_script
from scaling.data import dataset
from scaling.registry.dataset import DATASETS


def main(argv: list[str] | None = None) -> None:
    """Write the dataset and its manifest."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--fetched", type=Path, required=True, help="JSON file that dataset_fetch.py wrote")
    add("--train-images", type=int, default=50_000, help="synthetic: train split (default 50000)")
    add("--test-images", type=int, default=10_000, help="synthetic: test split (default 10000)")
    add("--seed", type=int, default=0, help="synthetic: random seed (default 0)")
    add("--output", type=Path, required=True, help=".npz file to write")
    add("--manifest", type=Path, required=True, help="JSON file to write")
    args = parser.parse_args(argv)

    match files.read_json(args.fetched):
        case {"source": str(name), "path": str() | None as path, "origin": str(origin)} if (
            name in DATASETS.names() and DATASETS.find(name).takes_path == bool(path)
        ):
            place = Path(path) if path else None
        case _:
            raise UserError(
                f"{args.fetched} is not what dataset_fetch.py writes; delete it so that it is "
                "made again"
            )
    made_up = dataset.MadeUp(args.train_images, args.test_images, args.seed)
    data, note = DATASETS.find(name).read.load()(place, made_up)
    dataset.save(data, args.output)
    files.write_json(args.manifest, dataset.manifest(data, name, origin + note))


if __name__ == "__main__":
    run_script(main)
