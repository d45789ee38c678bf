r"""Train one run of the grid and write its record, run.json.

With `--engine command` a command of the user's trains.

    python workflow/scripts/train_run.py --gpus 2 --batch-size 512 \
        --dataset resources/dataset/digits/images.npz \
        --manifest resources/dataset/digits/manifest.json --output run.json
"""

from pathlib import Path

from scaling.core import command_line
from scaling.core.errors import UserError, program
from scaling.core.records.run import RUN
from scaling.core.training_options import Options
from scaling.launch import launcher, supervisor
from scaling.launch.run_spec import RunSpec
from scaling.registry.engine import ENGINES


class Command(Options):
    """A run, the data it trains on, and where its record goes."""

    run: RunSpec
    output: Path
    """The record to write."""
    dataset: Path | None = None
    """images.npz, made by dataset_prepare.py; none for a command of the user's."""
    manifest: Path | None = None
    """Its manifest.json, with the dataset's description."""


@program
def main(argv: list[str] | None = None) -> None:
    command = command_line.parse(Command, argv)
    spec, ranks_folder = command.run.resolved(), launcher.worker_folder()
    if spec.engine == "command":
        record = ENGINES.find(spec.engine).trainer.load()(spec, command.output.with_name("files"))
        RUN.write(command.output, record)
    elif command.dataset is None or command.manifest is None:
        raise UserError("--dataset and --manifest are missing: dataset_prepare.py writes them")
    elif ranks_folder:
        from scaling.instruments import steps
        from scaling.launch import ranks
        from scaling.training import worker

        worker.load(spec)
        job = (spec, command.dataset, command.manifest, ranks_folder, steps.measure_all)
        ranks.start(spec.processes, worker.run, *job)
        return
    else:
        line = launcher.command(Path(__file__), argv, spec.processes, spec.nodes)
        record = supervisor.supervise(spec, command.manifest, command.output, line)
    print(supervisor.summary(record))
