"""Run a user's own training command as a cell of the grid, and record what it prints.

The command starts its processes itself. Times and losses are what it prints
(`scaling.command.printed_epochs`); busy time, energy and memory are read from outside.
"""

import math
import os
import platform
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from scaling.command.from_outside import FromOutside
from scaling.command.printed_epochs import Printed, PrintedEpochs
from scaling.core import environment
from scaling.core.errors import UserError
from scaling.core.gpu_counters import power_capped_seconds
from scaling.core.records.kind import Status
from scaling.core.records.run import EpochRow, RunRecord
from scaling.launch import launcher, measure, outcome, supervisor
from scaling.launch.launcher import ProcessResult
from scaling.launch.rank_log import by_kind
from scaling.launch.run_spec import CommandOptions, RunSpec
from scaling.registry import engine as engines

CLIENT = Path(__file__).parents[3] / "client"


class Output:
    """The output of a command: printed on, and read for epochs and for a lack of memory."""

    def __init__(self, outside: FromOutside, ranks: int) -> None:
        self.epochs, self._outside = PrintedEpochs(ranks), outside
        self.status: Status | None = None
        self.last = "nothing"

    def line(self, text: str) -> None:
        """Take a line; UserError if it tells of an epoch and is wrong."""
        print(text, end="", flush=True)
        self.last = text.strip() or self.last
        self.status = self.status or outcome.status_of(text)
        self.epochs.read(text, self._outside.seconds())


def run(spec: RunSpec) -> RunRecord:
    """Return the record of a cell, whose recipe is a command.

    Raises UserError where the command fails for another reason than memory or time, or prints what
    cannot be.
    """
    host_info, cell = environment.describe(spec.device), spec.cell
    template: str = spec.recipe_options["command"]
    values = vars(cell) | {
        "global_batch_size": cell.global_batch_size,
        "epochs": spec.epochs,
        "nodes": spec.nodes,
        "gpus_per_node": cell.gpus // spec.nodes,
        "host": platform.node(),
        "port": launcher.reserve_port(),
    }
    words = [word.format(**values) for word in shlex.split(template)]
    if shutil.which(words[0]) is None:
        raise UserError(f"recipes.{cell.recipe}.command starts {words[0]}, which is not found")
    limit = spec.time_limit_seconds
    paths = filter(None, [os.environ.get("PYTHONPATH"), str(CLIENT)])
    own = {"PYTHONPATH": os.pathsep.join(paths), "PYTHONUNBUFFERED": "1"}
    here = cell.gpus // spec.nodes
    with (
        measure.leased(spec.device, here, spec.cpu_threads, limit) as (gpus, variables),
        FromOutside(gpus, spec.nodes) as outside,
    ):
        output = Output(outside, cell.gpus)
        result = launcher.launch(words, variables | own, limit, output.line)
    status, message = _verdict(spec, output, result)
    epochs = _epochs(spec, output, result) if status in ("ok", "diverged") else []
    lines = by_kind(_lines(spec, epochs, outside))
    ended = replace(result, gpus=tuple(gpus), lines=lines)
    files = engines.files(template)
    read = spec.model_copy(update={"recipe_options": {"command": template} | files})
    record = supervisor.record_of(read, host_info, ended, (status, message))
    record["dataset"] = {"source": "own"}
    record["model"] |= {"name": "own", "width": 1, "options": {}}
    record["training"] = {key: record["training"][key] for key in CommandOptions.model_fields} | {
        "engine": "command",
        "command": template,
        "recipe_options": files,
        "recipe_applied": None,
        "compiled_batch_sizes": None,
    }
    if epochs:
        record["startup"] = {"total": epochs[0].end - (epochs[0].seconds or 0)}
    return record


def _verdict(spec: RunSpec, output: Output, result: ProcessResult) -> tuple[Status, str | None]:
    """Return the status of a command that has ended, and a sentence on what is unusual."""
    told = output.epochs.told()
    if result.timed_out:
        limit = f"stopped at the time limit of {spec.time_limit_seconds:g} s"
        return "timeout", f"{limit} after {len(told)} printed epochs or steps"
    if result.returncode:
        if output.status or result.oom_kills:
            return output.status or "oom_host", f"exit status {result.returncode}: out of memory"
        raise UserError(
            f"the command of {spec.cell} ended with exit status {result.returncode}, its last line "
            f"being {output.last[:200]!r}: the log above has the rest; no record is written"
        )
    if any(line.loss is not None and not math.isfinite(line.loss) for line in told):
        return "diverged", "a loss was not finite"
    return "ok", None if told else "no epoch was printed, and the whole run counts as one"


def _epochs(spec: RunSpec, output: Output, result: ProcessResult) -> list[Printed]:
    """Return the epochs of a command that has ended; UserError if they cannot be.

    Without a printed one the whole run is an epoch.
    """
    epochs = output.epochs.epochs(spec.epochs)
    if 0 < len(epochs) <= spec.warmup_epochs:
        raise UserError(
            f"the command of {spec.cell} printed {len(epochs)} epochs, of which the first "
            f"{spec.warmup_epochs} warm up (training.warmup_epochs): none is left to measure; have "
            f"it train for {spec.epochs}, or give it {{epochs}}"
        )
    if (total := sum(epoch.seconds or 0 for epoch in epochs)) > result.seconds:
        raise UserError(
            f"the command of {spec.cell} printed epochs of {total:.3g} s together and ran for "
            f"{result.seconds:.3g} s: seconds are an epoch's own, not those since the start"
        )
    return epochs or [Printed(seconds=result.seconds, end=result.seconds)]


def _lines(spec: RunSpec, epochs: list[Printed], outside: FromOutside) -> Iterator[dict[str, Any]]:
    """Yield what a rank of ours would have reported; epochs that warm up come first."""
    told = [each.test_accuracy for each in epochs if each.test_accuracy is not None]
    evaluation = {"test_loss": None, "test_accuracy": told[-1]} if told else None
    yield {"kind": "end", "rank": 0, "memory": outside.memory(), "evaluation": evaluation}
    warmup = min(spec.warmup_epochs, len(epochs) - 1)
    iterations, busy = 0, list[list[float]]()
    total = sum(epoch.seconds or 0.0 for epoch in epochs[warmup:])
    for number, epoch in enumerate(epochs, start=1):
        seconds, samples = epoch.seconds or 0.0, epoch.samples or 0
        start, finite = epoch.end - seconds, epoch.loss is not None and math.isfinite(epoch.loss)
        read = outside.readings(start, epoch.end)
        row = EpochRow(
            epoch=number,
            rank=0,
            role="warmup" if number <= warmup else "measured",
            iterations=epoch.steps or math.ceil(samples / spec.cell.global_batch_size),
            seconds=seconds,
            loader_seconds=None,
            samples=samples,
            train_loss=epoch.loss if finite else None,
            train_accuracy=None,
            power_capped_seconds=power_capped_seconds(read),
            gpu_readings=read,
        )
        if number > warmup:
            iterations += row["iterations"]
            busy.append([seconds * share for share in outside.busy_shares(start, epoch.end)])
        yield {"kind": "epoch", **row}
    if not epochs:
        return
    measured = {"rank": 0, "iterations": iterations or len(busy), "seconds": total}
    of_gpus = [
        measured | {"gpu": gpu, "busy_seconds": sum(own)}
        for gpu, own in enumerate(zip(*busy, strict=True))
        if not math.isnan(sum(own))
    ]
    nothing: dict[str, Any] = {"in_memory": None, "readings": [], "step": []}
    last = {"seconds": epochs[-1].end, "device_time": of_gpus}
    yield {"kind": "readings", "rank": 0, **nothing, **last}
