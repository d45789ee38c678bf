"""Run a user's own training command as a cell of the grid, and record what it prints.

Times and losses are those it prints, one line of JSON for each epoch or step; busy time, energy and
memory are read from outside. `{"epoch": 2, "seconds": 4.1, "samples": 50000, "loss": 0.31,
"test_accuracy": 0.87}`: all but `epoch` may be left out. With `step` too the lines of an epoch are
added up; with `step` alone steps are cut into as many equal parts as epochs are asked for.
"""

import math
import os
import platform
import re
import shlex
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

from annotated_types import Ge, Gt, Le
from pydantic import BaseModel, FiniteFloat, ValidationError

from scaling.core import environment
from scaling.core.errors import UserError
from scaling.core.gpu_counters import power_capped_seconds
from scaling.core.records.kind import Status
from scaling.core.records.run import EpochRow, RunRecord
from scaling.launch import launcher, measure, outcome, supervisor
from scaling.launch.from_outside import FromOutside
from scaling.launch.launcher import ProcessResult
from scaling.launch.rank_log import by_kind
from scaling.launch.run_spec import CommandOptions, RunSpec
from scaling.registry import engine as engines

CLIENT = Path(__file__).parents[3] / "client"
LONGEST_SHOWN = 200
TELLS = re.compile(r'\s*\{.*"(epoch|step)"')


class Printed(BaseModel):
    """An epoch or a step as it was printed; `end` is when, in seconds since the command's start."""

    epoch: Annotated[int, Ge(0)] | None = None
    step: Annotated[int, Ge(0)] | None = None
    seconds: Annotated[FiniteFloat, Gt(0)] | None = None
    samples: Annotated[int, Gt(0), Le(2**62)] | None = None
    loss: float | None = None
    test_accuracy: Annotated[float, Ge(0), Le(1)] | None = None
    end: float = 0.0
    steps: int = 0

    @property
    def place(self) -> tuple[int, int]:
        return (self.epoch or 0, -1 if self.step is None else self.step)


class Output:
    """What a command's lines tell of its epochs or steps, in order, and of a lack of memory.

    Each of at most `ranks` processes may print the same ones; the longest counts.
    """

    def __init__(self, ranks: int = 1) -> None:
        self.status: Status | None = None
        self.last = "nothing"
        self._told: dict[tuple[int, int], Printed] = {}
        self._times: Counter[tuple[int, int]] = Counter()
        self._ranks, self._before = ranks, 0.0

    def told(self) -> list[Printed]:
        """Return the epochs or steps so far."""
        return list(self._told.values())

    def read(self, line: str, now: float) -> None:
        """Print a line of time `now`, and read it; UserError for an epoch that cannot be."""
        print(line, end="", flush=True)
        self.last = line.strip() or self.last
        self.status = self.status or outcome.status_of(line)
        if not TELLS.match(line):
            return
        try:
            found = Printed.model_validate_json(line)
            self._check(found)
        except ValueError as error:
            why = str(error)
            if isinstance(error, ValidationError):
                first = error.errors()[0]
                why = f"{'.'.join(map(str, first['loc']))} {first['msg']}"
            shown = line.strip()[:LONGEST_SHOWN]
            raise UserError(f"the command printed {shown}, and {why}") from error
        seconds = found.seconds or max(now - self._before, 1e-9)
        self._before = now
        before = self._told.get(found.place)
        if before is None or seconds > (before.seconds or 0):
            own = found.model_copy(update={"end": now, "seconds": seconds})
            self._told[found.place] = own

    def _check(self, found: Printed) -> None:
        """Raise ValueError for a line that cannot come after those before."""
        last, place = next(reversed(self._told.values()), found), found.place
        self._times[place] += 1
        if (last.epoch is None) != (found.epoch is None):
            raise ValueError("only some lines have an epoch: print it in all or in none")
        if place not in self._told and place < last.place:
            raise ValueError(f"it comes after {last.place[0]}: print epochs in their order")
        if self._times[place] > self._ranks:
            raise ValueError("each process has printed that before: number epochs on")

    def epochs(self, wanted: int) -> list[Printed]:
        """Return the epochs; steps that have none are cut into `wanted` equal parts."""
        lines = self.told()
        if not lines or lines[0].epoch is not None:
            return [_sum([*own]) for _, own in groupby(lines, lambda line: line.epoch)]
        size = len(lines) // wanted
        if not size:
            raise UserError(
                f"the command printed {len(lines)} steps, to be cut into {wanted} parts "
                "(training.warmup_epochs and measured_epochs): train for longer, or print epochs"
            )
        return [_sum(lines[size * part : size * (part + 1)]) for part in range(wanted)]


def _sum(lines: Sequence[Printed]) -> Printed:
    """Return an epoch of its steps: of several, their sums, mean loss and last accuracy."""
    samples, losses, accuracies = (
        [value for line in lines if (value := getattr(line, name)) is not None]
        for name in ("samples", "loss", "test_accuracy")
    )
    return lines[-1].model_copy(
        update={
            "seconds": sum(line.seconds or 0 for line in lines),
            "samples": sum(samples) if len(samples) == len(lines) else None,
            "loss": fmean(losses) if losses else None,
            "test_accuracy": accuracies[-1] if accuracies else None,
            "steps": len(lines) if lines[-1].step is not None else 0,
        }
    )


def run(spec: RunSpec) -> RunRecord:
    """Return the record of a cell whose recipe is a command.

    UserError where it fails for another reason than memory or time, or prints what cannot be.
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
        output = Output(cell.gpus)
        result = launcher.launch(
            words, variables | own, limit, lambda line: output.read(line, outside.seconds())
        )
        # On the clock of the lines: a little more than the command's own seconds.
        result = replace(result, seconds=outside.seconds())
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
    told = output.told()
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
    """Return a command's epochs, or the whole run as one; UserError for what cannot be."""
    epochs = output.epochs(spec.epochs)
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
