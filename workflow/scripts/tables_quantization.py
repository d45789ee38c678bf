"""One table of all seeds: what each stage of quantization costs."""

import argparse
from pathlib import Path

from scaling import tables
from scaling.errors import run_script
from scaling.quantization_stages import read_document, table


def main(argv: list[str] | None = None) -> None:
    """Write quantization.csv: one row per seed and stage."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--stages",
        type=Path,
        nargs="+",
        required=True,
        help="what quantize_evaluate.py wrote, one file per seed",
    )
    parser.add_argument("--output", type=Path, required=True, help="quantization.csv to write")
    arguments = parser.parse_args(argv)
    documents = [read_document(path) for path in arguments.stages]
    tables.write(table(documents), arguments.output)


if __name__ == "__main__":
    run_script(main)
