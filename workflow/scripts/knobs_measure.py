"""Measure steps of DistributedDataParallel that was told something, beside plain ones."""

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from scaling.config.knobs import Knobs
from scaling.core import command_line
from scaling.core.errors import UserError, program
from scaling.core.records.dataset import DATASET
from scaling.core.records.machine import KNOBS
from scaling.core.training_options import DataOptions
from scaling.launch import launcher, measure, supervisor
from scaling.launch.run_spec import RunSpec


@dataclass(frozen=True, kw_only=True)
class Command(DataOptions):
    """A cell, the data it trains on, what is tried, and where the record goes."""

    run: RunSpec
    knobs: dict[str, Any]
    """Section `knobs` of the configuration."""
    output: Path
    """The record to write."""


@program
def main(argv: list[str] | None = None) -> None:
    """Write knobs.json: the `rows` of `synchronization.knobs`, and where they are from."""
    command = command_line.parse(Command, argv, __doc__)
    spec, knobs = command.run.resolved(), Knobs.of(command.knobs, "knobs")
    log_folder = launcher.worker_folder()
    if log_folder is not None:
        from scaling.launch import ranks
        from scaling.synchronization import knobs as worker

        job = (spec, knobs, command.dataset, command.manifest, log_folder)
        ranks.start(spec.processes, worker.run, *job)
        return
    dataset = DATASET.read(command.manifest)
    largest = replace(spec.cell, batch_size=knobs.most_batches * spec.cell.batch_size)
    advice = "set knobs.batch_sizes or accumulated_batches to smaller values"
    if reason := supervisor.infeasible_reason(replace(spec, cell=largest), dataset["train_images"]):
        raise UserError(f"{reason}: {advice}")
    found = measure.run(
        __file__,
        argv,
        command.output,
        name=f"the knobs of DistributedDataParallel on {spec.cell.gpus} GPUs",
        advice=f"; where memory is short, {advice}",
        device=spec.device,
        gpus=spec.cell.gpus,
        processes=spec.processes,
        nodes=spec.nodes,
        cpu_threads=spec.cpu_threads,
        time_limit=spec.time_limit_seconds,
    )
    used = {"cpu_threads": spec.cpu_threads, "recipe_options": spec.recipe_options}
    document = {
        "cell": asdict(spec.cell),
        "knobs": knobs.what,
        "training": spec.shared | used,
        "dataset": dataset,
        "device": spec.device,
        "rows": found.of("row"),
        "seconds": found.seconds,
        "environment": found.environment,
    }
    KNOBS.write(command.output, document)
