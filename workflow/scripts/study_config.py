"""Write down the complete configuration that a study is made with, as YAML."""

import argparse
import json
from pathlib import Path

import yaml

from scaling.core import files
from scaling.core.errors import run_script


def main(argv: list[str] | None = None) -> None:
    """Write the configuration."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", type=json.loads, required=True, help="all of it, as JSON")
    parser.add_argument("--output", type=Path, required=True, help="the YAML file to write")
    args = parser.parse_args(argv)
    files.write_text(args.output, yaml.safe_dump(args.config, sort_keys=False))


if __name__ == "__main__":
    run_script(main)
