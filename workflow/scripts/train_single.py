"""Write the record of a single-GPU run for one strategy from the one measured for another.

One GPU is one plain process whatever the strategy: measuring it twice would give every cell two
baselines that differ by noise.
"""

from dataclasses import dataclass, fields
from pathlib import Path

from scaling.core import command_line, files
from scaling.core.errors import UserError, run_script
from scaling.core.grid import Cell
from scaling.core.records import RunRecord, read_record
from scaling.launch.run_spec import RunSpec
from scaling.registry.strategy import STRATEGIES


@dataclass(frozen=True)
class Command:
    """A record and what to make of it."""

    record: Path
    """run.json on one GPU."""
    strategy: str
    """Of the output."""
    output: Path
    """The record to write."""


def as_strategy(record: RunRecord, strategy: str) -> RunRecord:
    """Make the record of a single-GPU run that of the same run under another `strategy`.

    `measured_as` keeps the strategy it was measured under. Raises UserError for several GPUs.
    """
    cell = Cell(**{**record["cell"], "strategy": STRATEGIES.find(strategy).name})
    if cell.gpus != 1:
        raise UserError(f"a run of {cell.gpus} GPUs serves its own strategy only: train {cell}")
    used = record["training"]
    parameters = {key.name: used[key.name] for key in fields(RunSpec) if key.name in used}
    digest = RunSpec(cell, **parameters).digest()
    return {
        **record,
        "cell": vars(cell).copy(),
        "environment": {**record["environment"], "config_digest": digest},
        "measured_as": record["cell"]["strategy"],
    }


def main(argv: list[str] | None = None) -> None:
    command = command_line.parse(Command, argv)
    record = as_strategy(read_record(command.record), command.strategy)
    files.write_json(command.output, record)


if __name__ == "__main__":
    run_script(main)
