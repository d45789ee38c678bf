"""Image orders, accuracies, messages and buffers of the synchronization experiments."""

from pathlib import Path

from scaling.core import command_line, files
from scaling.core.errors import run_script
from scaling.tables import schema
from scaling.tables.experiments.synchronization import (
    accuracy,
    agreement,
    buffers,
    collectives,
    orders,
)

MAKERS = {
    "sampler": orders,
    "sampler_accuracy": accuracy,
    "collectives": collectives,
    "buffers": buffers,
    "agreement": agreement,
}


@command_line.script
def main(records: tuple[Path, ...], tables: Path) -> None:
    """Write the five tables; without a record they have no rows."""
    documents = [files.read_json(path) for path in records]
    schema.write_all({name: make(documents) for name, make in MAKERS.items()}, tables)


if __name__ == "__main__":
    run_script(main)
