r"""Run a user's own training command as one cell of the grid, and write its record, run.json.

    python workflow/scripts/train_command.py --recipe mine --gpus 2 --batch-size 64 \
        --command 'torchrun --nproc-per-node {gpus} train.py --batch-size {batch_size}' \
        --output run.json
"""

from dataclasses import dataclass, replace
from pathlib import Path

from scaling.core import command_line, environment
from scaling.core.errors import program
from scaling.core.records.run import RUN
from scaling.launch import own_trainer, supervisor
from scaling.launch.own_trainer import OwnRun


@dataclass(frozen=True, kw_only=True)
class Command:
    """A run, and where its record goes."""

    run: OwnRun
    output: Path
    """The record to write."""


@program
def main(argv: list[str] | None = None) -> None:
    asked = command_line.parse(Command, argv)
    spec = replace(asked.run, device=environment.resolve_device(asked.run.device))
    record = own_trainer.run(spec)
    RUN.write(asked.output, record)
    print(supervisor.summary(record))
