"""What the end of a run's processes means: a typed status, or a failure that names its causes.

Needs no torch: the process that launches the others does without.
"""

import re
import textwrap
from collections.abc import Iterator
from typing import Any

from scaling.core.errors import UserError
from scaling.core.records import Status
from scaling.launch.launcher import ProcessResult
from scaling.launch.rank_log import LinesByKind
from scaling.launch.run_spec import RunSpec
from scaling.registry.strategy import STRATEGIES

DEVICE_FULL = (
    "CUDA out of memory",
    "CUDA error: out of memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_ALLOC_FAILED",
    "Cuda failure 2 'out of memory'",
    "Failed to CUDA calloc",
)
HOST_FULL = (
    "DefaultCPUAllocator",
    "is killed by signal: Bus error",
    "unable to mmap",
    "Cannot allocate memory",
)
WORKER_KILLED = "is killed by signal: Killed"
"""What a DataLoader says of a loader worker that got SIGKILL."""
GAVE_UP_WAITING = re.compile("timed? ?out", re.IGNORECASE)
FATAL = "Fatal Python error"


def classify(error: BaseException) -> Status | None:
    """`oom` when the device had no room, `oom_host` when the host had none, None for a failure.

    So it is with an error that came from one of these: ending a CUDA graph's capture for want of
    memory raises an error of its own. A loader worker that got SIGKILL is a failure here: why it
    did, only the supervisor can tell.
    """
    statuses = (_status(origin) for origin in _origins(error))
    return next((status for status in statuses if status is not None), None)


def first_sentence(error: BaseException) -> str:
    """What the error says, on one line: of its text, or that of the lack of memory behind it."""
    told = next((origin for origin in _origins(error) if _status(origin) is not None), error)
    lines = [line.strip() for line in str(told).splitlines() if line.strip()]
    telling = [line for line in lines if "allocate" in line or "memory" in line]
    return textwrap.shorten((telling or lines or [type(told).__name__])[0], 300, placeholder=" …")


def _origins(error: BaseException) -> Iterator[BaseException]:
    """The error, what it came from, and so on."""
    origin: BaseException | None = error
    while origin is not None:
        yield origin
        origin = origin.__cause__ or origin.__context__


def _status(error: BaseException) -> Status | None:
    text = str(error)
    if type(error).__name__ == "OutOfMemoryError" or any(words in text for words in DEVICE_FULL):
        return "oom"
    if isinstance(error, MemoryError) or any(words in text for words in HOST_FULL):
        return "oom_host"
    return None


def verdict(spec: RunSpec, lines: LinesByKind, ending: ProcessResult) -> tuple[Status, str | None]:
    """The status of a run that was started, and one sentence when it is not ok.

    Raises UserError for a failure: an error other than a lack of memory, a rank that was killed
    or hung, a rank that ended without its report.
    """
    outcomes = sorted(lines["outcome"], key=lambda line: line["time"])
    if len(lines["end"]) == spec.processes:
        return _measured(spec, lines, ending, outcomes)
    for line in outcomes:
        if line["status"] != "failed":
            return line["status"], f"rank {line['rank']}: {line['message']}"
    if ending.timed_out and not outcomes:
        return "timeout", _timeout(spec, lines)
    victims = _victims(spec, lines)
    if ending.oom_kills and victims:
        return "oom_host", f"the kernel ended {' and '.join(victims)} because memory had run out"
    raise UserError(
        f"training of {spec.cell} failed with exit status {ending.returncode} "
        f"({'; '.join(_causes(spec, lines, outcomes))}): "
        "no record is written, the log above has the details"
    )


def _measured(
    spec: RunSpec, lines: LinesByKind, ending: ProcessResult, outcomes: list[dict[str, Any]]
) -> tuple[Status, str | None]:
    """The status of a run that has all its epochs, whatever became of its instruments then."""
    unfinite = [row["epoch"] for row in lines["epoch"] if row["train_loss"] is None]
    if unfinite:
        return "diverged", f"the loss was not finite in epoch {min(unfinite)}"
    replicates = STRATEGIES.find(spec.cell.strategy).replicates
    if replicates and len({end["parameters_sha256"] for end in lines["end"]}) > 1:
        raise UserError(
            f"training of {spec.cell} failed: its ranks ended with different parameters, so their "
            "gradients were not averaged; no record is written"
        )
    if ending.timed_out or ending.returncode != 0:
        told = [f"rank {line['rank']}: {line['message']}" for line in outcomes]
        why = told[0] if told else f"the time limit of {spec.time_limit_seconds:g} s was reached"
        if not told and not ending.timed_out:
            why = f"exit status {ending.returncode}"
        return "ok", f"communication was not read, all epochs were measured ({why})"
    return "ok", None


def _timeout(spec: RunSpec, lines: LinesByKind) -> str:
    done = _epochs_done(spec, lines)
    behind = [rank for rank, epochs in done.items() if epochs < max(done.values())]
    return (
        f"stopped at the time limit of {spec.time_limit_seconds:g} s "
        f"after {min(done.values())} of {spec.epochs} epochs"
        + "".join(f"; rank {rank} did not finish epoch {done[rank] + 1}" for rank in behind)
    )


def _victims(spec: RunSpec, lines: LinesByKind) -> list[str]:
    """Who got SIGKILL: ranks that ended without a word, and loader workers of ranks that say so."""
    loaders = [
        f"a loader worker of rank {line['rank']}"
        for line in lines["outcome"]
        if WORKER_KILLED in line["message"]
    ]
    return [*(f"rank {rank}" for rank in _unreported(spec, lines)), *loaders]


def _unreported(spec: RunSpec, lines: LinesByKind) -> list[int]:
    """List the ranks that left neither a report nor stacks, as only SIGKILL does."""
    reported = {line["rank"] for kind in ("end", "outcome", "stacks") for line in lines[kind]}
    return [rank for rank in range(spec.processes) if rank not in reported]


def _causes(spec: RunSpec, lines: LinesByKind, outcomes: list[dict[str, Any]]) -> list[str]:
    """What became of each rank, the first to fail first; who hung where the others gave up."""
    crashed = {
        line["rank"]: line["text"].splitlines()[0]
        for line in lines["stacks"]
        if line["text"].startswith(FATAL)
    }
    reported = {line["rank"] for line in [*lines["end"], *outcomes]}
    running = sorted({line["rank"] for line in lines["stacks"]} - crashed.keys() - reported)
    gave_up = bool(crashed) or any(GAVE_UP_WAITING.search(line["message"]) for line in outcomes)
    hung = gave_up and len(running) == 1
    verb = "hung" if hung else "was still running"
    stuck = [] if hung else _stuck(spec, lines)
    return [
        *(f"rank {line['rank']}: {line['message']}" for line in outcomes),
        *(f"rank {rank}: {text}" for rank, text in crashed.items() if rank not in reported),
        *(
            f"rank {rank} ended without a word in {_place(spec, lines, rank)}"
            for rank in _unreported(spec, lines)
        ),
        *(f"rank {rank} {verb} in {_place(spec, lines, rank)}" for rank in running),
        *([f"likely stuck: {' and '.join(f'rank {rank}' for rank in stuck)}"] if stuck else []),
    ]


def _stuck(spec: RunSpec, lines: LinesByKind) -> list[int]:
    """Ranks that others waited for inside an epoch: who said nothing, else who got least far."""
    steps = {
        line["rank"]: (line["launched"], line["finished"])
        for line in lines["outcome"]
        if "launched" in line
    }
    said = {line["rank"] for line in lines["outcome"]}
    quiet = [rank for rank in range(spec.processes) if rank not in said]
    if not steps or quiet:
        return quiet if steps else []
    behind = [rank for rank, step in steps.items() if step == min(steps.values())]
    return sorted(behind) if len(behind) < len(steps) else []


def _epochs_done(spec: RunSpec, lines: LinesByKind) -> dict[int, int]:
    """The last epoch that each rank reported, 0 for none."""
    done = dict.fromkeys(range(spec.processes), 0)
    for row in lines["epoch"]:
        done[row["rank"]] = max(done[row["rank"]], row["epoch"])
    return done


def _place(spec: RunSpec, lines: LinesByKind, rank: int) -> str:
    """Where in the run a rank was when it reported for the last time."""
    done = _epochs_done(spec, lines)[rank]
    if rank not in {line["rank"] for line in lines["startup"]}:
        return "its start-up"
    return f"epoch {done + 1}" if done < spec.epochs else "the steps after its last epoch"
