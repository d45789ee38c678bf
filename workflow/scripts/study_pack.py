"""Pack the study in results/: its configuration and raw records, without weights."""

import argparse
import re
from pathlib import Path

from scaling.config import packing
from scaling.config.config_file import read_config
from scaling.config.keys import NAME
from scaling.config.stored import CONFIG
from scaling.core.errors import UserError, program

RESULTS, DATASETS, STUDIES = Path("results"), Path("resources/dataset"), Path("studies")


@program
def main(argv: list[str] | None = None) -> None:
    """Copy the study into its folder atomically."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--study", required=True, help="name of the study (safety check)")
    parser.add_argument("--force", action="store_true", help="replace a stored one that differs")
    args = parser.parse_args(argv)
    if not re.fullmatch(NAME, args.study):
        raise UserError(f"study {args.study!r} is no name (allowed: letters, digits, _, . and -)")
    config = read_config(RESULTS / CONFIG)
    if config["study"] != args.study:
        raise UserError(
            f"{RESULTS} holds the study {config['study']}, not {args.study!r}: pack it by that name"
        )
    found = packing.sources(config, RESULTS, DATASETS)
    folder = STUDIES / args.study
    if not packing.pack(found, folder, args.force):
        print(f"{folder} holds this study already")
        return
    kilobytes = sum(source.stat().st_size for source in found.values()) / 1e3
    print(f"packed {len(found)} files, {kilobytes:,.0f} kB, into {folder}")
    if not (folder / "README.md").exists():
        print(f"write {folder}/README.md: the machine, the date and the exact commands")
