"""One table of all seeds: what each stage of quantization costs ResNet-18."""

import argparse
from pathlib import Path

from scaling.core.errors import run_script
from scaling.quantization.resnet_stages import read_document, table
from scaling.tables import io


def main(argv: list[str] | None = None) -> None:
    """Write quantization_resnet.csv: one row per seed, stage and kind of weight scales."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--stages",
        type=Path,
        nargs="*",
        required=True,
        help="what quantize_resnet.py wrote, one file per seed; none gives a table without rows",
    )
    parser.add_argument("--output", type=Path, required=True, help="quantization_resnet.csv")
    arguments = parser.parse_args(argv)
    documents = [read_document(path) for path in arguments.stages]
    io.write(table(documents), arguments.output)


if __name__ == "__main__":
    run_script(main)
