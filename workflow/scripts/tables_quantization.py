"""Write the tables of quantization from its records: variants, layers, pairs, backends, ResNet-18.

A table that no record belongs to has no rows.
"""

from dataclasses import dataclass, field
from pathlib import Path

from scaling.core import command_line
from scaling.core import quantization_records as records
from scaling.core.errors import run_script
from scaling.tables import schema
from scaling.tables.experiments import quantization, quantization_backends


@dataclass(frozen=True)
class Command:
    """The records, one for each seed (and variant), and where their tables go."""

    output: Path
    """The folder for the five tables."""
    records: list[Path] = field(default_factory=list)
    """Of variants, written by quantize_evaluate.py."""
    peers: list[Path] = field(default_factory=list)
    """Of reference backends, written by quantize_peers.py."""
    stages: list[Path] = field(default_factory=list)
    """Of ResNet-18, written by quantize_evaluate.py."""


def main(argv: list[str] | None = None) -> None:
    command = command_line.parse(Command, argv)
    variants = records.read_variants(command.records)
    backends, resnets = records.read_backends(command.peers), records.read_resnets(command.stages)
    tables = {
        "quantization": quantization.variants(variants),
        "quantization_layers": quantization.layers(variants),
        "quantization_paired": quantization.paired(variants),
        "quantization_peers": quantization_backends.backends(backends),
        "quantization_resnet": quantization_backends.resnet(resnets),
    }
    for name, table in tables.items():
        schema.write(name, table, command.output / f"{name}.csv")


if __name__ == "__main__":
    run_script(main)
