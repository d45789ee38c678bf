"""Image orders, accuracies, messages and buffers of the synchronization experiments."""

import argparse
from pathlib import Path

from scaling.core import files
from scaling.core.errors import run_script
from scaling.tables import io
from scaling.tables.experiments.buffers import buffers
from scaling.tables.experiments.collectives import collectives
from scaling.tables.experiments.sampler import accuracy, orders


def main(argv: list[str] | None = None) -> None:
    """Write the four tables; without a record they have no rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--records", type=Path, nargs="*", required=True, help="synchronization.json, if any")
    add("--sampler", type=Path, required=True, help="sampler.csv to write: orders of images")
    add("--accuracy", type=Path, required=True, help="sampler_accuracy.csv to write")
    add("--collectives", type=Path, required=True, help="collectives.csv to write: messages")
    add("--buffers", type=Path, required=True, help="buffers.csv to write")
    args = parser.parse_args(argv)
    documents = [files.read_json(path) for path in args.records]
    io.write(orders(documents), args.sampler)
    io.write(accuracy(documents), args.accuracy)
    io.write(collectives(documents), args.collectives)
    io.write(buffers(documents), args.buffers)


if __name__ == "__main__":
    run_script(main)
