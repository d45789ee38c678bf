"""Run a user's own training command as a cell of the grid, and record what it prints.

That is a line of JSON for each epoch, or each `step` of one: `{"epoch": 2, "seconds": 4.1,
"samples": 50000, "loss": 0.31, "test_accuracy": 0.87}`, of which all but `epoch` may be left out.
"""

import math
import os
import platform
import re
import shlex
import shutil
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np
import pandas as pd
import pynvml
from annotated_types import Ge, Gt, Le
from pydantic import BaseModel, FiniteFloat, ValidationError

from scaling.core import environment, gpu_counters
from scaling.core.environment import ask_nvml
from scaling.core.errors import UserError
from scaling.core.records.kind import Status
from scaling.core.records.run import EpochRow, GpuReading, RunRecord
from scaling.launch import launcher, measure, outcome, supervisor
from scaling.launch.launcher import ProcessResult, by_kind
from scaling.launch.run_spec import CommandOptions, RunSpec
from scaling.registry import engine as engines

CLIENT = Path(__file__).parents[3] / "client"
LONGEST_SHOWN = 200
SAMPLING_SECONDS = 0.2
TELLS = re.compile(r'\s*\{.*"(epoch|step)"')


class Printed(BaseModel):
    """A line on an epoch or a step."""

    epoch: Annotated[int, Ge(0)]
    step: Annotated[int, Ge(0)] = -1
    seconds: Annotated[FiniteFloat, Gt(0)] | None = None
    samples: Annotated[int, Gt(0), Le(2**62)] | None = None
    loss: float | None = None
    test_accuracy: Annotated[float, Ge(0), Le(1)] | None = None


class Watch:
    """What is seen of a command: its output and, within the block, samples of its GPUs.

    Times are seconds since the watch was made. `gpus` are CUDA_VISIBLE_DEVICES entries.
    """

    def __init__(self, gpus: Sequence[str]) -> None:
        self.lines: list[tuple[float, str]] = []
        """Those on epochs, with their times."""
        self.last = "nothing"
        self.status: Status | None = None
        """That of a lack of memory, if a line tells of one."""
        self._handles = gpu_counters.handles(gpus)
        self._samples: list[dict[str, Any]] = []
        self._over = threading.Event()
        self._sampler = threading.Thread(target=self._sample, daemon=True)
        self._start = time.monotonic()

    def __enter__(self) -> Self:
        self._sampler.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._sampler.join()

    def seconds(self) -> float:
        """Return the seconds since the watch was made."""
        return time.monotonic() - self._start

    def read(self, lines: Iterable[str]) -> None:
        """Print lines as they come, and keep those on epochs."""
        for line in lines:
            print(line, end="", flush=True)
            self.last = line.strip()[:LONGEST_SHOWN] or self.last
            self.status = self.status or outcome.status_of(line)
            if TELLS.match(line):
                self.lines.append((self.seconds(), line))

    def memory(self) -> dict[str, Any]:
        """Return a record's `memory`: the peak of each GPU."""
        peaks = [int(own["bytes"].max()) for own in self._of_gpus()]
        whole = peaks and ask_nvml(pynvml.nvmlDeviceGetMemoryInfo, self._handles[0])
        about = {"kind": "device" if peaks else None, "peak_bytes": peaks}
        return about | {"capacity_bytes": float(whole.total) if whole else None}

    def between(self, start: float, end: float) -> list[tuple[GpuReading, float]]:
        """Return each GPU's counters between two times, and in which share of them a kernel ran."""
        last = end + SAMPLING_SECONDS
        return [
            (
                gpu_counters.reading(_at(own, start), _at(own, end)),
                float(own.loc[own["time"].between(start, last), "busy"].mean()),
            )
            for own in self._of_gpus()
        ]

    def _of_gpus(self) -> list[pd.DataFrame]:
        samples = self._samples
        return [own for _, own in pd.DataFrame(samples).groupby("gpu")] if samples else []

    def _sample(self) -> None:
        over = not self._handles
        while not over:
            now = self.seconds()
            for gpu, handle in enumerate(self._handles):
                rates = ask_nvml(pynvml.nvmlDeviceGetUtilizationRates, handle)
                memory = ask_nvml(pynvml.nvmlDeviceGetMemoryInfo, handle)
                row = {"time": now, "gpu": gpu, "busy": rates.gpu / 100 if rates else None}
                row["bytes"] = memory.used if memory else 0
                self._samples.append(row | gpu_counters.state(handle))
            over = self._over.wait(SAMPLING_SECONDS)


def _at(own: pd.DataFrame, time: float) -> dict[str, float]:
    """Return the state of a GPU at a time, as far as all its samples have it."""
    known = own.drop(columns="busy").dropna(axis="columns")
    return {str(name): float(np.interp(time, own["time"], known[name])) for name in known}


def epochs_of(timed_lines: Sequence[tuple[float, str]], ranks: int = 1) -> pd.DataFrame:
    """Return a row for each epoch: what was printed, its `end` in seconds, and its `steps`.

    Each of `ranks` processes may print the same lines; the longest counts. Without `seconds`, those
    since the line before count. UserError for a line that cannot be.
    """
    rows, times = list[dict[str, Any]](), Counter[tuple[int, int]]()
    before, last = 0.0, (0, -1)
    for now, line in timed_lines:
        try:
            printed = Printed.model_validate_json(line)
            place = (printed.epoch, printed.step)
            if place not in times and place < last:
                raise ValueError(f"it comes after {last[0]}: print epochs in their order")
            if times[place] == ranks:
                raise ValueError("each process has printed that before: number epochs on")
        except ValueError as error:
            why = str(error)
            if isinstance(error, ValidationError):
                first = error.errors()[0]
                why = f"{'.'.join(map(str, first['loc']))} {first['msg']}"
            shown = line.strip()[:LONGEST_SHOWN]
            raise UserError(f"the command printed {shown}, and {why}") from error
        times[place] += 1
        row = printed.model_dump() | {"end": now}
        row["seconds"] = printed.seconds or max(now - before, 1e-9)
        if printed.loss is not None and math.isnan(printed.loss):
            row["loss"] = math.inf  # To pandas NaN is what was not printed.
        rows.append(row)
        before, last = now, max(last, place)
    lines = pd.DataFrame(rows, columns=[*Printed.model_fields, "end"], dtype=float)
    slowest = lines.loc[lines.groupby(["epoch", "step"])["seconds"].idxmax()]
    return slowest.groupby("epoch").agg(
        seconds=("seconds", "sum"),
        samples=("samples", lambda own: own.sum(skipna=False)),
        loss=("loss", "mean"),
        test_accuracy=("test_accuracy", "last"),
        end=("end", "last"),
        steps=("step", lambda own: (own >= 0).sum()),
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
    paths = filter(None, [os.environ.get("PYTHONPATH"), str(CLIENT)])
    own = {"PYTHONPATH": os.pathsep.join(paths), "PYTHONUNBUFFERED": "1"}
    with (
        measure.leased(spec.device, cell.gpus // spec.nodes, spec) as (gpus, variables),
        Watch(gpus if spec.nodes == 1 else []) as watch,
    ):
        result = launcher.launch(words, variables | own, spec.time_limit_seconds, watch.read)
        # On the clock of the lines: a little more than the command's own seconds.
        result = replace(result, seconds=watch.seconds(), gpus=tuple(gpus))
    status, message, epochs = _verdict(spec, watch, result)
    ended = replace(result, lines=by_kind(_lines(spec, epochs, watch)))
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
    }
    if len(epochs):
        record["startup"] = {"total": epochs["end"].iloc[0] - epochs["seconds"].iloc[0]}
    return record


def _verdict(
    spec: RunSpec, watch: Watch, result: ProcessResult
) -> tuple[Status, str | None, pd.DataFrame]:
    """Return the status of a command, a sentence on what is unusual, and its epochs.

    The whole run is one where none was printed. UserError for what cannot be.
    """
    none = epochs_of([])
    if result.timed_out:
        limit = f"stopped at the time limit of {spec.time_limit_seconds:g} s"
        return "timeout", f"{limit} after {len(watch.lines)} printed lines", none
    if result.returncode and watch.status:
        return watch.status, f"exit status {result.returncode}: out of memory", none
    if result.returncode:
        raise UserError(
            f"the command of {spec.cell} ended with exit status {result.returncode}, its last line "
            f"being {watch.last!r}: the log above has the rest; no record is written"
        )
    epochs = epochs_of(watch.lines, spec.cell.gpus)
    if not len(epochs):
        whole: dict[Any, float] = {"seconds": result.seconds, "end": result.seconds, "steps": 0}
        epochs.loc[0] = dict.fromkeys(epochs, math.nan) | whole
        return "ok", "no epoch was printed, and the whole run counts as one", epochs
    if len(epochs) <= spec.warmup_epochs:
        raise UserError(
            f"the command of {spec.cell} printed {len(epochs)} epochs, of which the first "
            f"{spec.warmup_epochs} warm up (training.warmup_epochs): none is left to measure; have "
            f"it train for {spec.epochs}, or give it {{epochs}}"
        )
    if (total := epochs["seconds"].sum()) > result.seconds:
        raise UserError(
            f"the command of {spec.cell} printed epochs of {total:.3g} s together and ran for "
            f"{result.seconds:.3g} s: seconds are an epoch's own, not those since the start"
        )
    if epochs["loss"].abs().max() == math.inf:
        return "diverged", "a loss was not finite", epochs
    return "ok", None, epochs


def _lines(spec: RunSpec, epochs: pd.DataFrame, watch: Watch) -> Iterator[dict[str, Any]]:
    """Yield what a rank of ours would have reported; epochs that warm up come first."""
    warmup, busy = min(spec.warmup_epochs, len(epochs) - 1), list[list[float]]()
    measured: dict[str, Any] = {"rank": 0, "iterations": 0, "seconds": 0.0}
    rows: list[Any] = [*epochs.itertuples()]
    for number, epoch in enumerate(rows, start=1):
        samples = 0 if pd.isna(epoch.samples) else int(epoch.samples)
        read = watch.between(epoch.end - epoch.seconds, epoch.end)
        readings = [reading for reading, _ in read]
        row = EpochRow(
            epoch=number,
            rank=0,
            role="warmup" if number <= warmup else "measured",
            iterations=int(epoch.steps) or math.ceil(samples / spec.cell.global_batch_size),
            seconds=epoch.seconds,
            loader_seconds=None,
            samples=samples,
            train_loss=epoch.loss if math.isfinite(epoch.loss) else None,
            train_accuracy=None,
            power_capped_seconds=gpu_counters.power_capped_seconds(readings),
            gpu_readings=readings,
        )
        if number > warmup:
            measured["iterations"] += row["iterations"]
            measured["seconds"] += epoch.seconds
            busy.append([epoch.seconds * share for _, share in read])
        yield {"kind": "epoch", **row}
    tested = epochs["test_accuracy"].dropna().tolist()[-1:]
    evaluation = {"test_loss": None, "test_accuracy": tested[0]} if tested else None
    yield {"kind": "end", "rank": 0, "memory": watch.memory(), "evaluation": evaluation}
    measured["iterations"] = measured["iterations"] or len(busy)
    of_gpus = [
        measured | {"gpu": gpu, "busy_seconds": float(seconds)}
        for gpu, seconds in pd.DataFrame(busy).sum(skipna=False).items()
        if seconds >= 0
    ]
    nothing: dict[str, Any] = {"in_memory": None, "readings": [], "step": []}
    yield {"kind": "readings", "rank": 0, **nothing, "device_time": of_gpus}
