r"""Run a user's own training command as one cell of the grid, and write its record, run.json.

    python workflow/scripts/train_command.py --recipe mine --strategy own --gpus 2 --batch-size 64 \
        --engine command --recipe-options '{"command": "python train.py {gpus}"}' \
        --output run.json
"""

from pathlib import Path

from scaling.core import command_line
from scaling.core.errors import program
from scaling.core.records.run import RUN
from scaling.core.training_options import Options
from scaling.launch import own_trainer, supervisor
from scaling.launch.run_spec import RunSpec


class Command(Options):
    """A run, and where its record goes."""

    run: RunSpec
    output: Path
    """The record to write."""


@program
def main(argv: list[str] | None = None) -> None:
    command = command_line.parse(Command, argv)
    record = own_trainer.run(command.run.resolved())
    RUN.write(command.output, record)
    print(supervisor.summary(record))
