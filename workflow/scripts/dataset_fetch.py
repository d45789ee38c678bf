"""Bring the raw data of an image source to this machine, and note where they lie.

The only step of the study that needs a network, and only for cifar10 without --path.
"""

import argparse
from pathlib import Path

from scaling.core import files
from scaling.core.errors import UserError, run_script
from scaling.data.dataset import Download
from scaling.registry.dataset import DATASETS


def main(argv: list[str] | None = None) -> None:
    """Write {source, path, origin} as JSON; path is null where there is nothing to fetch."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--source", required=True, choices=DATASETS.names(), help="which images")
    add("--path", type=Path, help="where the files of cifar10 or images lie already")
    add("--mirror-url", help="cifar10: where to download the archive from instead")
    add("--attempts", type=int, default=3, help="cifar10: downloads to try (default 3)")
    add("--raw-folder", type=Path, required=True, help="folder that receives a download")
    add("--output", type=Path, required=True, help="JSON file to write")
    args = parser.parse_args(argv)
    if args.attempts < 1:
        parser.error(f"--attempts must be at least 1, not {args.attempts}")
    source = DATASETS.find(args.source)
    if args.path and not source.takes_path:
        raise UserError(f"the source {source.name} takes no --path ({args.path}): leave it out")
    given = args.path.expanduser() if args.path else None
    download = Download(args.raw_folder, args.mirror_url, args.attempts)
    path, origin = source.fetch.load()(given, download)
    document = {"source": source.name, "path": str(path) if path else None, "origin": origin}
    files.write_json(args.output, document)


if __name__ == "__main__":
    run_script(main)
