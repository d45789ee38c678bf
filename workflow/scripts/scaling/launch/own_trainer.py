"""Run a user's training command as a run of the grid, and turn its output into a record."""

import math
import os
import platform
import shlex
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
import pynvml

from scaling.core import code_digest, environment, gpu_counters
from scaling.core.environment import ask_nvml
from scaling.core.errors import UserError
from scaling.core.records.kind import Status
from scaling.core.records.run import EpochRow, GpuReading, RunRecord
from scaling.core.statistics import settling
from scaling.launch import launcher, measure, outcome
from scaling.launch.launcher import ProcessResult
from scaling.launch.printed import FASTEST, Output, epochs_of, read_lines
from scaling.launch.run_spec import CommandOptions, RunSpec
from scaling.registry import engine as engines

CLIENT = Path(__file__).parents[3] / "client"
FOLDER_VARIABLE = "SCALING_FOLDER"
THREADS = [f"{name}_NUM_THREADS" for name in ("MKL", "OPENBLAS", "GOTO", "NUMEXPR")]
THREADS += ["VECLIB_MAXIMUM_THREADS"]
"""Environment variables that Snakemake sets to the number of a job's cores. `run` sets them to
`cpu_threads`, and `measure.leased` sets OMP_NUM_THREADS to the same number."""
SOFTWARE = ("python", "torch", "torchvision", "cuda", "nccl")
SKIPPED = {"results", "resources", "logs", "studies", "site", "__pycache__"}
"""Names of folders in which `_files` does not look for files of a command."""
MOST_FILES = 10_000
SAMPLING_SECONDS = 0.2


class Sampler:
    """Samples the memory, utilization and counters of GPUs during its `with` block.

    `gpus` are entries of CUDA_VISIBLE_DEVICES. `clock` returns the time of a sample in seconds.
    """

    def __init__(self, gpus: Sequence[str], clock: Callable[[], float]) -> None:
        self._handles, self._clock = gpu_counters.handles(gpus), clock
        self._samples: list[dict[str, Any]] = []
        self._over = threading.Event()
        self._sampler = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> Self:
        self._sampler.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._sampler.join()

    def memory(self) -> dict[str, Any]:
        """Return field `memory` of a record, in bytes: GPUs' peaks and the first GPU's capacity."""
        peaks = [int(own["bytes"].max()) for own in self._of_gpus()]
        whole = peaks and ask_nvml(pynvml.nvmlDeviceGetMemoryInfo, self._handles[0])
        capacity = float(whole.total) if whole else None
        kind = "device" if peaks else None
        return {"kind": kind, "peak_bytes": peaks, "capacity_bytes": capacity}

    def between(self, start: float, end: float) -> list[tuple[GpuReading, float]]:
        """Return each GPU's counter increases and busy fraction between `start` and `end` (s).

        A GPU is busy while a kernel runs (NVML's utilization). An unknown fraction is NaN.
        """
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
            now = self._clock()
            for gpu, handle in enumerate(self._handles):
                rates = ask_nvml(pynvml.nvmlDeviceGetUtilizationRates, handle)
                memory = ask_nvml(pynvml.nvmlDeviceGetMemoryInfo, handle)
                row = {"time": now, "gpu": gpu, "busy": rates.gpu / 100 if rates else None}
                row["bytes"] = memory.used if memory else 0
                self._samples.append(row | gpu_counters.state(handle))
            over = self._over.wait(SAMPLING_SECONDS)


def _at(own: pd.DataFrame, time: float) -> dict[str, float]:
    """Return a GPU's counters at `time`, interpolated in its samples `own`; omit any with NaN."""
    known = own.drop(columns="busy").dropna(axis="columns")
    return {str(name): float(np.interp(time, own["time"], known[name])) for name in known}


def run(spec: RunSpec, folder: Path) -> RunRecord:
    """Run the command of a recipe and return the record. The command may write to `folder`."""
    before, cell = environment.describe(spec.device), spec.cell
    template: str = spec.recipe_options["command"]
    values = vars(cell) | {
        "global_batch_size": cell.global_batch_size,
        "epochs": spec.epochs,
        "nodes": spec.nodes,
        "gpus_per_node": cell.gpus // spec.nodes,
        "host": platform.node(),
        "port": launcher.reserve_port(),
        "folder": folder.absolute(),
    }
    words = [word.format(**values) for word in shlex.split(template)]
    if shutil.which(words[0]) is None:
        raise UserError(f"recipes.{cell.recipe}.command starts {words[0]}, which is not found")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    paths = filter(None, [os.environ.get("PYTHONPATH"), str(CLIENT)])
    own = {"PYTHONPATH": os.pathsep.join(paths), "PYTHONUNBUFFERED": "1"}
    own[FOLDER_VARIABLE] = str(folder.absolute())
    own |= dict.fromkeys(THREADS, str(spec.cpu_threads))
    with measure.leased(spec.device, cell.gpus // spec.nodes, spec) as (gpus, variables):
        files, output = _files(), Output()
        with Sampler(gpus if spec.nodes == 1 else [], output.seconds) as sampler:
            result = launcher.launch(words, variables | own, spec.time_limit_seconds, output.read)
            # By the clock of the printed lines, a little more than the command's run time.
            seconds = output.seconds()
        after = _files()
    lines = read_lines(output.lines, cell.gpus)
    status, message, epochs = _verdict(spec, output, result, seconds, epochs_of(lines))
    measured = epochs[min(spec.warmup_epochs, len(epochs) - 1) :]
    rows = [*_rows(spec, epochs, measured.index, lines, sampler)]
    tested = epochs["test_accuracy"].dropna().tolist()[-1:]
    began = (epochs["end"] - epochs["seconds"]).tolist()[:1]
    steps = lines[lines["epoch"].isin(measured.index)].dropna(subset=["step_seconds", "rank"])
    return RunRecord(
        cell=vars(cell).copy(),
        status=status,
        message=message,
        dataset={"source": "own"},
        model={"name": "own", "width": 1, "options": {}, "parameters_sha256": []}
        | dict.fromkeys(("parameters", "gradient_bytes", "flops_per_image")),
        training=spec.model_dump(include={*CommandOptions.model_fields})
        | {
            "engine": "command",
            "command": template,
            "recipe_options": engines.files(template),
            "recipe_applied": None,
            "epoch_lines": len(output.lines),
            "written": [one for one in after if after[one][0] != files.get(one, (0, 0))[0]],
            "read": [one for one in after if one in files and after[one][1] != files[one][1]],
            "step_seconds": steps.groupby("rank")["step_seconds"].median().tolist(),
        },
        epochs=rows,
        evaluation={"test_loss": None, "test_accuracy": tested[0]} if tested else None,
        settling=settling(rows),
        memory=sampler.memory(),
        communication={"backend": None, "bucket_bytes": [], "sent_share": None, "readings": []},
        in_memory=[],
        device_time=[*_busy(measured, sampler)],
        environment={
            **environment.completed(before, gpus),
            **code_digest.described(__name__),
            **dict.fromkeys(SOFTWARE),
            **{key: output.software[key] for key in SOFTWARE if key in output.software},
        },
        # Without a printed duration, the first epoch begins with the command.
        startup={"total": began[0]} if began and began[0] > FASTEST else None,
        run_seconds=seconds,
    )


def _files() -> dict[str, tuple[int, int]]:
    """Return the times (ns) of the last change and read of each file below the working directory.

    If there are more than `MOST_FILES` files, return {}.
    """
    found = {}
    for place, folders, names in os.walk("."):
        folders[:] = [name for name in folders if name not in SKIPPED and name[0] != "."]
        for path in (Path(place, name) for name in names):
            with suppress(OSError):
                known = path.stat()
                found[str(path)] = (known.st_mtime_ns, known.st_atime_ns)
        if len(found) > MOST_FILES:
            return {}
    return found


def _verdict(
    spec: RunSpec, output: Output, result: ProcessResult, seconds: float, epochs: pd.DataFrame
) -> tuple[Status, str | None, pd.DataFrame]:
    """Return the run's status, a sentence on anything unusual (or None), and `epochs` to record.
    UserError if the command fails for an unknown reason, or if epochs are too few or impossible.
    """
    of = f"the command of {spec.cell}"
    if result.timed_out:
        limit = f"stopped at the time limit of {spec.time_limit_seconds:g} s"
        silent = f"silent since {output.last:.1f} s" if output.last else "silent from the start"
        printed = f"{len(output.lines)} printed lines on epochs"
        return "timeout", f"{limit} after {printed}, {silent}", epochs[:0]
    if result.returncode:
        status, sentence = outcome.of_output(output.tail)
        if status:
            return status, f"exit status {result.returncode}: {sentence}", epochs[:0]
        raise UserError(
            f"{of} ended with exit status {result.returncode}: {sentence!r}; the log above has "
            "the rest; no record is written"
        )
    if unread := output.unread:
        unread = [f"{len(unread)} lines with an epoch were not read, the first is {unread[0]}"]
    if not len(epochs):
        whole: dict[Any, float] = {"seconds": seconds, "end": seconds, "steps": 0}
        epochs.loc[0] = dict.fromkeys(epochs, math.nan) | whole
        notes = ["no epoch was printed, and the whole run counts as one", *unread]
        return "ok", "; ".join(notes), epochs
    if epochs["loss"].abs().max() == math.inf:
        return "diverged", "a loss was not finite", epochs
    wanted = spec.epochs if "epochs" in engines.places(spec.recipe_options["command"]) else 0
    if (first := int(epochs.index[0])) > 1:
        raise UserError(
            f"{of} printed epoch {first} first, not 0 or 1: if it went on from a checkpoint of "
            "another run, have it write to {folder}, a folder of each run's own"
        )
    if len(epochs) < max(wanted, spec.warmup_epochs + 1):
        raise UserError(
            f"{of} printed {len(epochs)} epochs, of which the first {spec.warmup_epochs} warm up "
            f"(training.warmup_epochs): have it train for {spec.epochs}, the value of {{epochs}}"
        )
    if (total := epochs["seconds"].sum()) > seconds:
        raise UserError(
            f"{of} printed epochs of {total:.3g} s together and ran for {seconds:.3g} s: seconds "
            "are an epoch's own, not those since the start"
        )
    return "ok", "; ".join(unread) or None, epochs


def _rows(
    spec: RunSpec, epochs: pd.DataFrame, measured: Any, lines: pd.DataFrame, sampler: Sampler
) -> Iterator[EpochRow]:
    """Yield a row per epoch and rank; only for rank 0 if the output names no ranks."""
    ranks = lines.dropna(subset="rank").groupby(["epoch", "rank"])[["seconds", "data_wait"]].last()
    epoch: Any
    for number, epoch in enumerate(epochs.itertuples(), start=1):
        samples = 0 if pd.isna(epoch.samples) else int(epoch.samples)
        read = sampler.between(epoch.end - epoch.seconds, epoch.end)
        readings = [reading for reading, _ in read]
        own = ranks[ranks.index.get_level_values("epoch") == epoch.Index]
        seen = [(key[1], *map(float, row)) for key, row in zip(own.index, own.values, strict=True)]
        for rank, seconds, waited in seen or [(0, epoch.seconds, math.nan)]:
            yield EpochRow(
                epoch=number,
                rank=int(rank),
                role="measured" if epoch.Index in measured else "warmup",
                iterations=int(epoch.steps),
                seconds=seconds,
                loader_seconds=None if math.isnan(waited) else min(waited, seconds),
                samples=0 if rank else samples,
                train_loss=epoch.loss if math.isfinite(epoch.loss) else None,
                train_accuracy=None,
                power_capped_seconds=gpu_counters.power_capped_seconds(readings),
                gpu_readings=[] if rank else readings,
            )


def _busy(measured: pd.DataFrame, sampler: Sampler) -> Iterator[dict[str, Any]]:
    """Yield a row per GPU: busy seconds in all measured epochs, if NVML reports utilization."""
    busy = []
    epoch: Any
    for epoch in measured.itertuples():
        read = sampler.between(epoch.end - epoch.seconds, epoch.end)
        busy.append([epoch.seconds * share for _, share in read])
    steps, total = int(measured["steps"].sum()), float(measured["seconds"].sum())
    whole = {"rank": 0, "iterations": steps or len(measured), "seconds": total}
    for gpu, seconds in pd.DataFrame(busy).sum(skipna=False).items():
        if seconds >= 0:
            yield whole | {"gpu": gpu, "busy_seconds": float(seconds)}
