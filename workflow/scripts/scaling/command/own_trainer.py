"""Run a user's own training command as a cell of the grid, and record what it prints.

The command starts its processes itself. Times and losses are what it prints
(`scaling.command.printed_epochs`); busy time, energy and memory are read from outside.
"""

import math
import os
import platform
import shlex
import shutil
from collections import deque
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from scaling.command import own_record
from scaling.command.from_outside import FromOutside
from scaling.command.printed_epochs import Printed, PrintedEpochs
from scaling.core import environment
from scaling.core.environment import Device
from scaling.core.errors import SNAKEMAKE_VARIABLE, UserError
from scaling.core.grid import Cell
from scaling.core.records.fields import Status
from scaling.core.records.run import RunRecord
from scaling.launch import launcher, lease, outcome
from scaling.launch.launcher import ProcessResult

CLIENT = Path(__file__).parents[3] / "client"
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
            "host": platform.node(),
            "port": launcher.reserve_port(),
        }


class Output:
    """The output of a command: printed on, read for epochs, and its last lines kept."""

    def __init__(self, outside: FromOutside, ranks: int) -> None:
        self.epochs, self.last = PrintedEpochs(ranks), deque[str](maxlen=LAST_LINES)
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
    words = [word.format(**spec.values()) for word in shlex.split(spec.command)]
    if shutil.which(words[0]) is None:
        raise UserError(f"recipes.{spec.cell.recipe}.command starts {words[0]}, which is not found")
    limit = spec.time_limit_seconds
    here = spec.cell.gpus // spec.nodes
    paths = [os.environ.get("PYTHONPATH"), str(CLIENT)]
    variables = {
        **os.environ,
        "OMP_NUM_THREADS": str(spec.cpu_threads),
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "PYTHONUNBUFFERED": "1",
        SNAKEMAKE_VARIABLE: "",
    }
    with ExitStack() as held:
        held.enter_context(launcher.terminable())
        names: list[str] = []
        if spec.device == "cuda":
            names = held.enter_context(lease.gpus(here, environment.visible_gpus(), limit))
            variables |= {
                "CUDA_VISIBLE_DEVICES": ",".join(names),
                "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
            }
        else:
            held.enter_context(lease.cpu(limit))
        outside = held.enter_context(FromOutside(names, spec.nodes))
        output = Output(outside, spec.cell.gpus)
        result = launcher.launch(words, variables, limit, output.line)
    output.end()
    status, message = _verdict(spec, output, result)
    epochs = _epochs(spec, output, result) if status in ("ok", "diverged") else []
    return own_record.of(
        asdict(spec),
        (status, message),
        {**host_info, **environment.leased_gpus(names)},
        epochs,
        result.seconds,
        outside,
    )


def _verdict(spec: OwnRun, output: Output, result: ProcessResult) -> tuple[Status, str | None]:
    """Return the status of a command that has ended, and a sentence on what is unusual."""
    told = output.epochs.told()
    if result.timed_out:
        limit = f"stopped at the time limit of {spec.time_limit_seconds:g} s"
        return "timeout", f"{limit} after {len(told)} printed epochs or steps"
    if result.returncode:
        if output.status or result.oom_kills:
            return output.status or "oom_host", f"exit status {result.returncode}: out of memory"
        last = next((line.strip() for line in reversed(output.last) if line.strip()), "nothing")
        raise UserError(
            f"the command of {spec.cell} ended with exit status {result.returncode}, its last line "
            f"being {last[:200]!r}: the log above has the rest; no record is written"
        )
    said = []
    if not told:
        said.append("no epoch was printed, and the whole run counts as one")
    if result.left_behind:
        said.append(
            f"{' and '.join(result.left_behind[:3])} ran on after the command and was ended"
        )
    if any(line.loss is not None and not math.isfinite(line.loss) for line in told):
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
