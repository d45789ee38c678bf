"""Image orders, accuracies, messages and buffers of the synchronization experiments."""

import argparse
from pathlib import Path

from scaling import files, tables
from scaling.errors import run_script
from scaling.synchronization.buffers_table import buffers
from scaling.synchronization.collectives_table import collectives
from scaling.synchronization.sampler_table import accuracy, orders


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
    tables.write(orders(documents), args.sampler)
    tables.write(accuracy(documents), args.accuracy)
    tables.write(collectives(documents), args.collectives)
    tables.write(buffers(documents), args.buffers)


if __name__ == "__main__":
    run_script(main)
