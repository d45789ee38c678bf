"""Run a user's own training command as a cell of the grid, and record what it prints.

The command starts its processes itself. Times and losses are what it prints
(`scaling.launch.printed_epochs`); busy time, energy and memory are read from outside.
"""

import hashlib
import json
import math
import os
import shlex
import shutil
from collections import deque
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from scaling.core import environment
from scaling.core.environment import Device
from scaling.core.errors import SNAKEMAKE_VARIABLE, UserError
from scaling.core.gpu_counters import power_capped_seconds
from scaling.core.grid import Cell
from scaling.core.records.fields import Status
from scaling.core.records.run import EpochRow, RunRecord
from scaling.core.settling import settling
from scaling.instruments.from_outside import FromOutside
from scaling.launch import launcher, lease, outcome
from scaling.launch.launcher import ProcessResult
from scaling.launch.printed_epochs import Printed, PrintedEpochs
from scaling.registry import command

CLIENT = Path(__file__).parents[3] / "client"
UNKNOWN_OF_MODEL = (
    *("parameters", "gradient_bytes", "flops_per_image"),
    "activation_bytes_per_image",
)
MOST_CHARACTERS, LAST_LINES = 5_000_000, 40


@dataclass(frozen=True, kw_only=True)
class OwnRun:
    """A cell and the command that trains it."""

    cell: Cell = field(default=Cell("own", "own", 1, 128, 0))
    """Which cell of the grid, and its seed."""
    command: str
    """The command, with values of the cell in braces."""
    warmup_epochs: int = 1
    """Epochs at the start, recorded and never averaged."""
    measured_epochs: int = 3
    """Epochs after them at least."""
    device: Device = "auto"
    """`auto` means GPUs where one is visible."""
    cpu_threads: int = 1
    """OMP_NUM_THREADS of the command."""
    time_limit_seconds: float = 3600
    """After which the command is ended."""
    nodes: int = 1
    """Nodes of a Slurm job; the command is started on the first."""

    def values(self) -> dict[str, Any]:
        """Return what a command may have in braces."""
        return {
            "gpus": self.cell.gpus,
            "batch_size": self.cell.batch_size,
            "global_batch_size": self.cell.global_batch_size,
            "seed": self.cell.seed,
            "repeat": self.cell.repeat,
            "epochs": self.warmup_epochs + self.measured_epochs,
            "nodes": self.nodes,
            "gpus_per_node": self.cell.gpus // self.nodes,
            "host": environment.host(),
            "port": launcher.reserve_port(),
        }


class Output:
    """The output of a command: printed on, read for epochs, and its last lines kept."""

    def __init__(self, outside: FromOutside) -> None:
        self.epochs, self.last = PrintedEpochs(), deque[str](maxlen=LAST_LINES)
        self.status: Status | None = None
        self._outside, self._written, self.dropped = outside, 0, 0

    def line(self, text: str) -> None:
        """Take a line; UserError if it tells of an epoch and is wrong."""
        self._written += len(text)
        if self._written <= MOST_CHARACTERS:
            print(text, end="", flush=True)
        else:
            self.dropped += len(text)
        self.last.append(text)
        self.status = self.status or outcome.status_of(text)
        self.epochs.read(text, self._outside.seconds())

    def end(self) -> None:
        """Print the last lines of an output that was too long to be printed whole."""
        if self.dropped:
            print(f"… {self.dropped:,} more characters of output, not kept. Its last lines:")
            print("".join(self.last))


def run(spec: OwnRun) -> RunRecord:
    """Return the record of a cell.

    UserError where the command fails for another reason than memory or time, or prints what cannot
    be.
    """
    host_info = environment.describe(spec.device)
    there = len(environment.gpu_names())
    if spec.device == "cuda" and spec.cell.gpus > there * spec.nodes:
        said = f"{spec.cell.gpus // spec.nodes} GPUs are asked for and the machine has {there}"
        return _record(spec, host_info, ("infeasible", said), ProcessResult(0, timed_out=False))
    words = [word.format(**spec.values()) for word in shlex.split(spec.command)]
    if shutil.which(words[0]) is None:
        raise UserError(f"recipes.{spec.cell.recipe}.command starts {words[0]}, which is not found")
    with ExitStack() as held:
        held.enter_context(launcher.terminable())
        names: list[str] = []
        variables = {
            **os.environ,
            "OMP_NUM_THREADS": str(spec.cpu_threads),
            "PYTHONPATH": os.pathsep.join(
                filter(None, [os.environ.get("PYTHONPATH"), str(CLIENT)])
            ),
            "PYTHONUNBUFFERED": "1",
            SNAKEMAKE_VARIABLE: "",
        }
        if spec.device == "cuda":
            names = held.enter_context(
                lease.gpus(
                    spec.cell.gpus // spec.nodes,
                    environment.visible_gpus(),
                    spec.time_limit_seconds,
                )
            )
            variables |= {
                "CUDA_VISIBLE_DEVICES": ",".join(names),
                "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
            }
        else:
            held.enter_context(lease.cpu(spec.time_limit_seconds))
        outside = held.enter_context(FromOutside(names))
        output = Output(outside)
        result = launcher.launch(words, variables, spec.time_limit_seconds, output.line)
    output.end()
    return _record(
        spec,
        host_info,
        _verdict(spec, output, result),
        replace(result, gpus=tuple(names)),
        output,
        outside,
    )


def _verdict(spec: OwnRun, output: Output, result: ProcessResult) -> tuple[Status, str | None]:
    """Return the status of a command that has ended, and a sentence on what is unusual."""
    lines = output.epochs.lines
    if result.timed_out:
        limit = f"stopped at the time limit of {spec.time_limit_seconds:g} s"
        return "timeout", f"{limit} after {len(lines)} lines about epochs"
    if result.returncode:
        if output.status or result.oom_kills:
            return output.status or "oom_host", f"exit status {result.returncode}: out of memory"
        last = next((line.strip() for line in reversed(output.last) if line.strip()), "nothing")
        raise UserError(
            f"the command of {spec.cell} ended with exit status {result.returncode}, its last line "
            f"being {last[:200]!r}: the log above has the rest; no record is written"
        )
    said = []
    if not lines:
        said.append("no epoch was printed, and the whole run counts as one")
    if result.left_behind:
        said.append(
            f"{' and '.join(result.left_behind[:3])} ran on after the command and was ended"
        )
    if any(line.loss is not None and not math.isfinite(line.loss) for line in lines):
        return "diverged", "; ".join(["a loss was not finite", *said])
    return "ok", "; ".join(said) or None


def _epochs(spec: OwnRun, output: Output, result: ProcessResult) -> list[Printed]:
    """Return the epochs of a command that has ended; UserError if they cannot be.

    Without a printed one the whole run is an epoch.
    """
    asked = spec.warmup_epochs + spec.measured_epochs
    epochs = output.epochs.epochs(asked)
    if 0 < len(epochs) <= spec.warmup_epochs:
        raise UserError(
            f"the command of {spec.cell} printed {len(epochs)} epochs, of which the first "
            f"{spec.warmup_epochs} warm up (training.warmup_epochs): none is left to measure; have "
            f"it train for {asked}, or give it {{epochs}}"
        )
    if (total := sum(epoch.seconds or 0 for epoch in epochs)) > result.seconds:
        raise UserError(
            f"the command of {spec.cell} printed epochs of {total:.3g} s together and ran for "
            f"{result.seconds:.3g} s: seconds are an epoch's own, not those since the start"
        )
    return epochs or [Printed(seconds=result.seconds, end=result.seconds)]


def _record(
    spec: OwnRun,
    host_info: dict[str, Any],
    verdict: tuple[Status, str | None],
    result: ProcessResult,
    output: Output | None = None,
    outside: FromOutside | None = None,
) -> RunRecord:
    epochs: list[Printed] = []
    if output and verdict[0] in ("ok", "diverged"):
        epochs = _epochs(spec, output, result)
    rows = _rows(spec, epochs, outside, bool(output and output.epochs.lines))
    accuracies = [each.test_accuracy for each in epochs if each.test_accuracy is not None]
    files = command.files(spec.command)
    asked = asdict(spec)
    return RunRecord(
        cell=asked.pop("cell"),
        status=verdict[0],
        message=verdict[1],
        dataset={"source": "own"},
        model={"name": "own", "width": 1, "options": {}, "parameters_sha256": []}
        | dict.fromkeys(UNKNOWN_OF_MODEL),
        training=asked
        | {"engine": "command", "recipe_options": files}
        | dict.fromkeys(("recipe_applied", "compiled_batch_sizes")),
        epochs=rows,
        evaluation={"test_loss": None, "test_accuracy": accuracies[-1]} if accuracies else None,
        settling=settling(rows),
        memory=outside.memory()
        if outside
        else {"kind": None, "peak_bytes": [], "capacity_bytes": None},
        communication={"backend": None, "bucket_bytes": [], "sent_share": None, "readings": []},
        in_memory=[],
        device_time=_device_time(rows, epochs, outside) if outside else [],
        environment={
            **host_info,
            **environment.leased_gpus(result.gpus),
            "config_digest": hashlib.sha256(
                json.dumps([asdict(spec), files], sort_keys=True).encode()
            ).hexdigest(),
            "ended": environment.now(),
        },
        startup={"total": epochs[0].end - (epochs[0].seconds or 0)} if epochs else None,
        run_seconds=result.seconds or None,
        shutdown_seconds=result.seconds - epochs[-1].end if epochs else None,
    )


def _rows(
    spec: OwnRun, epochs: list[Printed], outside: FromOutside | None, printed: bool
) -> list[EpochRow]:
    rows = []
    for number, epoch in enumerate(epochs, start=1):
        seconds, samples = epoch.seconds or 0.0, epoch.samples or 0
        # GPUs of other nodes cannot be read, and a part of the energy would be taken for all.
        alone = outside is not None and spec.nodes == 1
        read = outside.readings(epoch.end - seconds, epoch.end) if outside and alone else []
        finite = epoch.loss is not None and math.isfinite(epoch.loss)
        rows.append(
            EpochRow(
                epoch=number,
                rank=0,
                role="warmup" if printed and number <= spec.warmup_epochs else "measured",
                iterations=epoch.steps or math.ceil(samples / spec.cell.global_batch_size),
                seconds=seconds,
                loader_seconds=None,
                samples=samples,
                train_loss=epoch.loss if finite else None,
                train_accuracy=None,
                power_capped_seconds=power_capped_seconds(read),
                gpu_readings=read,
            )
        )
    return rows


def _device_time(
    rows: list[EpochRow], epochs: list[Printed], outside: FromOutside
) -> list[dict[str, Any]]:
    """Return for each GPU how long its driver saw it busy in the measured epochs."""
    busy: dict[int, float] = {}
    measured = [
        (row, epoch) for row, epoch in zip(rows, epochs, strict=True) if row["role"] == "measured"
    ]
    for row, epoch in measured:
        for gpu, share in enumerate(outside.busy_shares(epoch.end - row["seconds"], epoch.end)):
            busy[gpu] = busy.get(gpu, 0.0) + share * row["seconds"]
    return [
        {
            "rank": 0,
            "gpu": gpu,
            "iterations": sum(row["iterations"] for row, _ in measured) or len(measured),
            "seconds": sum(row["seconds"] for row, _ in measured),
            "busy_seconds": seconds,
        }
        for gpu, seconds in busy.items()
        if not math.isnan(seconds)
    ]
