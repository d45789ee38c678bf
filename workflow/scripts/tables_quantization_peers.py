"""One table of all seeds: other quantizers beside ours, on the same weights and images."""

import argparse
from pathlib import Path

from scaling.core.errors import run_script
from scaling.tables import io
from scaling.tables.experiments.quantization_peers import read_document, table


def main(argv: list[str] | None = None) -> None:
    """Write quantization_peers.csv: one row per seed, engine and precision."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--peers",
        type=Path,
        nargs="*",
        required=True,
        help="what quantize_peers.py wrote, one file per seed; none gives a table without rows",
    )
    parser.add_argument("--output", type=Path, required=True, help="quantization_peers.csv")
    arguments = parser.parse_args(argv)
    documents = [read_document(path) for path in arguments.peers]
    io.write(table(documents), arguments.output)


if __name__ == "__main__":
    run_script(main)
