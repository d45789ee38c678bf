"""Image orders, accuracies, messages and buffers of the synchronization experiments."""

from pathlib import Path

from scaling.core import command_line
from scaling.core.records.machine import SYNCHRONIZATION
from scaling.tables import schema
from scaling.tables.experiments import synchronization

MAKERS = {
    "sampler": synchronization.orders,
    "sampler_accuracy": synchronization.accuracy,
    "collectives": synchronization.collectives,
    "buffers": synchronization.buffers,
    "agreement": synchronization.agreement,
}


@command_line.script
def main(records: tuple[Path, ...], tables: Path) -> None:
    """Write the five tables."""
    documents = [SYNCHRONIZATION.read(path) for path in records]
    schema.write_all({name: make(documents) for name, make in MAKERS.items()}, tables)
