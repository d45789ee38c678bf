"""Image orders, accuracies, messages and buffers of the synchronization experiments."""

import argparse
from pathlib import Path

from scaling.core import files
from scaling.core.errors import run_script
from scaling.tables import schema
from scaling.tables.experiments.synchronization import accuracy, buffers, collectives, orders

MAKERS = {
    "sampler": orders,
    "sampler_accuracy": accuracy,
    "collectives": collectives,
    "buffers": buffers,
}


def main(argv: list[str] | None = None) -> None:
    """Write the four tables; without a record they have no rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--records", type=Path, nargs="*", required=True, help="synchronization.json, if any")
    add("--tables", type=Path, required=True, help="folder to write to")
    args = parser.parse_args(argv)
    documents = [files.read_json(path) for path in args.records]
    schema.write_all({name: make(documents) for name, make in MAKERS.items()}, args.tables)


if __name__ == "__main__":
    run_script(main)
