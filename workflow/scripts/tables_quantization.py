"""Three tables of all seeds and variants: what each costs, beside each other, and every layer."""

import argparse
from pathlib import Path

from scaling.core.errors import run_script
from scaling.tables import io
from scaling.tables.experiments import quantization, quantization_paired
from scaling.tables.experiments.quantization_record import read_document


def main(argv: list[str] | None = None) -> None:
    """Write quantization.csv, a row per seed and variant, and what follows from the records."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--records",
        type=Path,
        nargs="*",
        required=True,
        help="what quantize_evaluate.py wrote, one file per seed and variant; none without Part B",
    )
    parser.add_argument("--output", type=Path, required=True, help="quantization.csv to write")
    parser.add_argument(
        "--layers", type=Path, required=True, help="quantization_layers.csv to write"
    )
    parser.add_argument(
        "--paired", type=Path, required=True, help="quantization_paired.csv to write"
    )
    arguments = parser.parse_args(argv)
    documents = [read_document(path) for path in arguments.records]
    io.write(quantization.variants(documents), arguments.output)
    io.write(quantization.layers(documents), arguments.layers)
    io.write(quantization_paired.table(documents), arguments.paired)


if __name__ == "__main__":
    run_script(main)
