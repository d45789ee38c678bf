"""Turn a fetched image source into the study's dataset: one .npz of arrays, and its manifest."""

import argparse
from pathlib import Path
from typing import Any

from scaling.core import files
from scaling.core.errors import UserError, run_script
from scaling.data import dataset, digits, images, synthetic


def main(argv: list[str] | None = None) -> None:
    """Write the dataset and its manifest."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--fetched", type=Path, required=True, help="JSON file that dataset_fetch.py wrote"
    )
    parser.add_argument(
        "--train-images", type=int, default=50_000,
        help="synthetic: size of the train split (default 50000, as CIFAR-10)",
    )  # fmt: skip
    parser.add_argument(
        "--test-images", type=int, default=10_000,
        help="synthetic: size of the test split (default 10000, as CIFAR-10)",
    )  # fmt: skip
    parser.add_argument("--seed", type=int, default=0, help="synthetic: random seed (default 0)")
    parser.add_argument("--output", type=Path, required=True, help=".npz file to write")
    parser.add_argument("--manifest", type=Path, required=True, help="JSON file to write")
    args = parser.parse_args(argv)

    fetched = files.read_json(args.fetched)
    data, origin = _read(fetched, args)
    dataset.save(data, args.output)
    files.write_json(args.manifest, dataset.manifest(data, fetched["source"], origin))


def _read(fetched: dict[str, Any], args: argparse.Namespace) -> tuple[dataset.ImageDataset, str]:
    """The dataset, and its origin with what was done to it."""
    match fetched:
        case {"source": "cifar10", "path": str(path), "origin": origin}:
            # Here, because torchvision takes seconds to import and the others do without.
            from scaling.data import cifar10

            return cifar10.read(Path(path)), origin
        case {"source": "images", "path": str(path), "origin": origin}:
            data, resized = images.read(Path(path))
            return data, f"{origin}; resized to 32x32: {resized}" if resized else origin
        case {"source": "digits", "origin": origin}:
            return digits.read(), origin
        case {"source": "synthetic", "origin": origin}:
            data = synthetic.generate(args.train_images, args.test_images, args.seed)
            return data, f"{origin}, seed {args.seed}"
    raise UserError(
        f"{args.fetched} is not what dataset_fetch.py writes; delete it so that it is made again"
    )


if __name__ == "__main__":
    run_script(main)
