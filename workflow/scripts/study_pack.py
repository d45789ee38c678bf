"""Keep the study in results/ as data: its configuration and raw records, without weights."""

import argparse
from pathlib import Path

from scaling.config import packing
from scaling.config.stored import CONFIG
from scaling.core.errors import UserError, run_script


def main(argv: list[str] | None = None) -> None:
    """Copy the study into its folder, whole or not at all."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--study", required=True, help="name of the study, to be sure that it is the one meant")
    add(
        "--results",
        type=Path,
        default=Path("results"),
        help="where it was made (default: %(default)s)",
    )
    add(
        "--datasets",
        type=Path,
        default=Path("resources/dataset"),
        help="folder of the datasets, for the manifest (default: %(default)s)",
    )
    add(
        "--studies",
        type=Path,
        default=Path("studies"),
        help="folder of the stored studies (default: %(default)s)",
    )
    add("--force", action="store_true", help="replace a stored study of that name that differs")
    args = parser.parse_args(argv)
    config = packing.read_config(args.results / CONFIG)
    if config["study"] != args.study:
        raise UserError(
            f"{args.results} holds the study {config['study']}, not {args.study!r}: pack it by "
            "that name"
        )
    found = packing.sources(config, args.results, args.datasets)
    folder = args.studies / args.study
    if not packing.pack(found, folder, args.force):
        print(f"{folder} holds this study already")
        return
    kilobytes = sum(source.stat().st_size for source in found.values()) / 1e3
    print(f"packed {len(found)} files, {kilobytes:,.0f} kB, into {folder}")
    if not (folder / "README.md").exists():
        print(f"write {folder}/README.md: the machine, the date and the exact commands")


if __name__ == "__main__":
    run_script(main)
