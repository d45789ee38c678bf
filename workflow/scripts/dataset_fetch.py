"""Bring the raw data of an image source to this machine, and note where they lie.

The only step of the study that needs a network, and only for cifar10 without --path.
"""

import argparse
from pathlib import Path

from scaling.core import files
from scaling.core.errors import UserError, run_script
from scaling.data import digits, images, synthetic


def main(argv: list[str] | None = None) -> None:
    """Write {source, path, origin} as JSON; path is null where there is nothing to fetch."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--source", required=True, choices=["cifar10", "images", "digits", "synthetic"],
        help="cifar10: as published; images: your own files; digits: scikit-learn's; "
        "synthetic: made up",
    )  # fmt: skip
    parser.add_argument(
        "--path", type=Path,
        help="cifar10: a folder or archive to use instead of a download; "
        f"images: a folder or tar archive of {images.LAYOUT}",
    )  # fmt: skip
    parser.add_argument("--mirror-url", help="cifar10: where to download the archive from instead")
    parser.add_argument(
        "--attempts", type=_positive, default=3, help="cifar10: downloads to try (default 3)"
    )
    parser.add_argument(
        "--raw-folder", type=Path, required=True, help="folder that receives a download"
    )
    parser.add_argument("--output", type=Path, required=True, help="JSON file to write")
    args = parser.parse_args(argv)

    given = args.path.expanduser() if args.path else None
    path: Path | None
    match args.source:
        case "cifar10":
            # Here, because torchvision takes seconds to import and the others do without.
            from scaling.data import cifar10

            path, origin = cifar10.fetch(given, args.raw_folder, args.mirror_url, args.attempts)
        case "images":
            path, origin = images.fetch(given)
        case source:
            if given:
                raise UserError(f"the source {source} takes no --path ({given}): leave it out")
            path, origin = None, digits.ORIGIN if source == "digits" else synthetic.ORIGIN
    document = {"source": args.source, "path": str(path) if path else None, "origin": origin}
    files.write_json(args.output, document)


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1, not {text}")
    return int(text)


if __name__ == "__main__":
    run_script(main)
