"""Derive the status of a run, or why it failed, from how its processes ended."""

import re
import textwrap
from collections.abc import Sequence
from typing import Any

from scaling.core import numbers as fmt
from scaling.core.errors import UserError
from scaling.core.records.kind import Status
from scaling.launch.launcher import LinesByKind, ProcessResult
from scaling.launch.run_spec import RunSpec
from scaling.registry.strategy import STRATEGIES

LACKS: dict[Status, re.Pattern[str]] = {
    "oom": re.compile(
        "OutOfMemoryError(?=:|$)|CUDA (error: )?out of memory|Cuda failure 2 'out of memory'|"
        "Failed to CUDA calloc|CU(BLAS|DNN)_STATUS_ALLOC_FAILED|RESOURCE_EXHAUSTED"
    ),
    "oom_host": re.compile(
        "MemoryError(?=:|$)|DefaultCPUAllocator|is killed by signal: Bus error|unable to mmap|"
        "Cannot allocate memory"
    ),
}
"""Maps statuses to patterns of errors about too little memory. The first match counts."""
NAMES_ERROR = re.compile(
    r"^(?:\[[^\]]*\]:?\s*|\d+:\s*)?"
    r"(?:(?:\w+\.)*\w*(?:Error|Exception|Interrupt)(?=:|$)|what\(\): )"
)
"""Matches the last line of a traceback or a C++ exception, also after a prefix with the rank."""
LAUNCHERS = re.compile(r"torch[./]distributed[./]elastic|ChildFailedError|CalledProcessError")
"""Matches messages of launchers, such as torchrun, about a process that failed."""
AFTERWARDS = re.compile("Connection (closed|reset)|Broken pipe|DistBackendError|DistNetworkError")
"""Matches errors that a process raises because another process has failed."""
GAVE_UP_WAITING = re.compile("timed? ?out", re.IGNORECASE)
FATAL = "Fatal Python error"


def status_of(text: str) -> Status | None:
    """Return `oom` or `oom_host` if the text of an error says that memory is short, else None."""
    return next((status for status, words in LACKS.items() if words.search(text)), None)


def classify(error: BaseException) -> Status | None:
    """Return `oom` or `oom_host` if memory ran out in `error` or one of its causes, else None."""
    return _judged(error)[0]


def first_sentence(error: BaseException) -> str:
    """Return one line of an error's message: the first line about memory, or else the first line.

    If an out-of-memory error caused `error`, the line is from the message of the cause.
    """
    _, cause = _judged(error)
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
    telling = [line for line in lines if re.search("allocate|memory|No space left", line)]
    sentence = (telling or lines or [type(cause).__name__])[0]
    if sentence.endswith(("on device", "on device (28)")):  # An error about a file would name it.
        sentence += ": enlarge /dev/shm (docker run --shm-size=8g), or take loader_workers: 0"
    return textwrap.shorten(sentence, 300, placeholder=" …")


def _judged(error: BaseException) -> tuple[Status | None, BaseException]:
    """Return (status, cause) for an out-of-memory cause of `error`, or else (None, `error`)."""
    origin: BaseException | None = error
    while origin:
        if status := status_of(f"{type(origin).__name__}: {origin}"):
            return status, origin
        origin = origin.__cause__ or origin.__context__
    return None, error


def of_output(lines: Sequence[str]) -> tuple[Status | None, str]:
    """Return the status of a failed command (None unless out of memory) and its error message.

    Both come from the last exception in `lines`, the output. Exceptions of launchers, and those
    caused by the end of another process, are skipped. If an epoch follows the exception, the status
    is None. Without an exception, the message is the last line, unless this reports an epoch.
    """
    own = [line for line in lines if not LAUNCHERS.search(line)]
    named = [place for place, line in enumerate(own) if NAMES_ERROR.match(line)]
    first = [at for at in named if status_of(own[at]) or not AFTERWARDS.search(own[at])]
    if last := (first or named)[-1:]:
        sentence, *after = own[last[0] :]
        went_on = any('"epoch"' in line for line in after)
        return None if went_on else status_of(sentence), sentence[:300]
    launched = next((at for at, line in enumerate(lines) if LAUNCHERS.search(line)), None)
    words = [line for line in list(lines)[:launched] if re.search(r"\w", line)]
    if words and '"epoch"' in words[-1]:
        words = ["no error was printed: perhaps it was killed, out of memory"]
    return None, (words or ["nothing was printed"])[-1][:300]


def verdict(spec: RunSpec, result: ProcessResult) -> tuple[Status, str | None]:
    """Return the status of a run, and a sentence about anything unusual (or None).

    Raise UserError if a rank failed or hung.
    """
    lines = result.lines
    outcomes = sorted(lines["outcome"], key=lambda line: line["time"])
    if len(lines["end"]) == spec.processes:
        return _measured(spec, result, outcomes)
    for line in outcomes:
        if line["status"] != "failed":
            return line["status"], f"rank {line['rank']}: {line['message']}"
    done = dict.fromkeys(range(spec.processes), 0)
    done |= {row["rank"]: row["epoch"] for row in lines["epoch"]}
    if result.timed_out and not outcomes:
        limit = f"stopped at the time limit of {spec.time_limit_seconds:g} s"
        return "timeout", f"{limit} after {min(done.values())} of {spec.epochs} epochs"
    raise UserError(
        f"training of {spec.cell} failed with exit status {result.returncode} "
        f"({'; '.join(_causes(done, lines, outcomes))}): "
        "no record is written, the log above has the details"
    )


def _measured(
    spec: RunSpec, result: ProcessResult, outcomes: list[dict[str, Any]]
) -> tuple[Status, str | None]:
    """Return the status of a run that trained all epochs, and a sentence on a problem (or None)."""
    lines = result.lines
    if unfinite := [row["epoch"] for row in lines["epoch"] if row["train_loss"] is None]:
        return "diverged", f"the loss was not finite in epoch {min(unfinite)}"
    tests = [end["evaluation"] for end in lines["end"] if end.get("evaluation")]
    if any(test["test_loss"] is None for test in tests):
        return "diverged", "the loss on the test set was not finite after the last epoch"
    replicates = STRATEGIES.find(spec.cell.strategy).replicates
    if replicates and len({end["parameters_sha256"] for end in lines["end"]}) > 1:
        raise UserError(
            f"training of {spec.cell} failed: its ranks ended with different parameters, so their "
            "gradients were not averaged; no record is written"
        )
    if not result.timed_out and result.returncode == 0:
        return "ok", None
    why = "its time limit" if result.timed_out else f"exit status {result.returncode}"
    if outcomes:
        why = f"rank {outcomes[0]['rank']}: {outcomes[0]['message']}"
    return "ok", f"communication was not read, all epochs were measured ({why})"


def _causes(done: dict[int, int], lines: LinesByKind, outcomes: list[dict[str, Any]]) -> list[str]:
    """Return phrases on how ranks ended: first their errors, then silent and likely hung ranks.

    `outcomes` has the errors in order of time, `done` each rank's last epoch. Ranks that report no
    error and no end likely hung. If all ranks report, those with the fewest steps likely hung.
    """
    fatal = [line for line in lines["stacks"] if line["text"].startswith(FATAL)]
    messages: dict[int, str] = {}
    for line in [*outcomes, *fatal]:  # A rank that gave up may fail again until it has ended.
        messages.setdefault(line["rank"], line.get("message") or line["text"].splitlines()[0])
    causes = [f"rank {rank}: {message}" for rank, message in messages.items()]
    ended, running = ({line["rank"] for line in lines[kind]} for kind in ("end", "stacks"))
    quiet = [rank for rank in done if rank not in messages.keys() | ended]
    for rank in quiet:
        verb = "was still running" if rank in running else "ended without a word"
        causes.append(f"rank {rank} {verb} after {fmt.plural(done[rank], 'epoch')}")
    steps = {o["rank"]: (o["launched"], o["finished"]) for o in outcomes if "launched" in o}
    stuck = quiet or [rank for rank, step in steps.items() if step == min(steps.values())]
    waited = fatal or any(GAVE_UP_WAITING.search(line["message"]) for line in outcomes)
    if waited and 0 < len(stuck) < len(done):
        causes.append(f"likely stuck: {' and '.join(f'rank {rank}' for rank in sorted(stuck))}")
    return causes
