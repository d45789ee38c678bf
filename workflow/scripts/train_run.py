r"""Train one run of the grid and write its record, run.json.

Checks that the cell can run, leases the GPUs, starts the processes (by srun on several nodes),
limits their time and writes the record.

    python workflow/scripts/train_run.py --gpus 2 --batch-size 512 \
        --dataset resources/dataset/digits/images.npz \
        --manifest resources/dataset/digits/manifest.json --output run.json
"""

import os
import sys
from pathlib import Path

from scaling.core import command_line
from scaling.core.errors import UserError, program
from scaling.core.training_options import DataOptions
from scaling.launch import launcher, supervisor
from scaling.launch.run_spec import RunSpec


class Command(DataOptions):
    """A run, the data it trains on, and where its record goes."""

    run: RunSpec
    output: Path
    """The record to write."""


@program
def main(argv: list[str] | None = None) -> None:
    command = command_line.parse(Command, argv)
    spec = command.run.resolved()
    if ranks_folder := launcher.worker_folder():
        phases = {"launch": launcher.elapsed()}
        from scaling.instruments import steps
        from scaling.launch import ranks
        from scaling.training import worker

        worker.load(spec)
        phases["imports"] = launcher.elapsed()
        job = (spec, command.dataset, command.manifest, ranks_folder, phases)
        ranks.start(spec.processes, worker.run, *job, steps.measure_all)
        return
    if "TORCHELASTIC_RUN_ID" in os.environ:
        raise UserError("start train_run.py with python: it starts its processes itself")
    arguments = sys.argv[1:] if argv is None else argv
    line = launcher.command(Path(__file__), arguments, spec.processes, spec.nodes)
    print(supervisor.summary(supervisor.supervise(spec, command.manifest, command.output, line)))
