"""What cannot be in the record of a run, whatever its types."""

import math
from collections.abc import Iterator
from typing import Any, get_args

from scaling.core.records.fields import Role, of_images
from scaling.core.settling import settling


def contradictions(record: Any) -> Iterator[str]:
    """Yield what is impossible in a run of the project's own engines, each in a few words."""
    status, rows = record["status"], record["epochs"]
    complete, processes = status in ("ok", "diverged"), len({row["rank"] for row in rows})
    if (status != "ok" and not record["message"]) or (status == "infeasible" and rows):
        yield f"status {status} without its message, or with epochs"
    places = [(row["epoch"], row["rank"]) for row in rows]
    wanted = sorted(set(places))
    if complete:
        last = min(max(places, default=(0, 0))[0], len(rows))
        wanted = [(epoch, rank) for epoch in range(1, last + 1) for rank in range(processes)]
    roles = [get_args(Role).index(row["role"]) for row in rows]
    if places != wanted or roles != sorted(roles):
        yield "epochs or their ranks are missing, twice, or out of order"
    elif complete:
        yield from _epochs(record, processes)
        yield from _parts(record, processes)


def _epochs(record: Any, processes: int) -> Iterator[str]:
    """Yield which epochs of a run that came to its end are impossible."""
    cell, images = record["cell"], record["dataset"]["train_images"]
    samples: dict[int, int] = {}
    for row in record["epochs"]:
        number = row["epoch"]
        if (row["loader_seconds"] or 0) > row["seconds"]:
            yield f"epoch {number} waits for longer than it takes"
        if record["status"] == "ok" and row["train_loss"] is None:
            yield f"the loss of epoch {number} is not finite, and the status ok"
        if row["role"] != "instrumented":
            share = cell["batch_size"] * cell["gpus"] // processes
            samples[number] = samples.get(number, 0) + row["samples"]
            if row["iterations"] != math.ceil(row["samples"] / share):
                yield f"epoch {number} has other iterations than its samples make"
        if not of_images(row["train_accuracy"], row["samples"]):
            yield f"epoch {number} has an accuracy that is not that of its samples"
    # The sampler gives all ranks the same number, so some images twice.
    if not all(0 <= found - images < processes for found in samples.values()):
        yield "an epoch has not the samples that the training set has"


def _parts(record: Any, processes: int) -> Iterator[str]:
    """Yield which parts of a run that came to its end do not fit its epochs."""
    rows, asked = record["epochs"], record["training"]
    roles = [row["role"] for row in rows if row["rank"] == 0]
    few = any(roles.count(role) < asked[f"{role}_epochs"] for role in ("warmup", "measured"))
    if "measured" not in roles or (record["status"] == "ok" and few):
        yield "fewer epochs than asked for, or no measured one"
    seconds = sum(row["seconds"] for row in rows if row["rank"] == 0)
    if seconds > 1.001 * (record["run_seconds"] or math.inf):
        yield "epochs that take longer than the run"
    if record["settling"] != settling(rows):
        yield "another settling than that of the epochs"
    if len(record["model"]["parameters_sha256"]) != processes:
        yield "not every rank's weights"
    accuracy = record["evaluation"] and record["evaluation"]["test_accuracy"]
    if not of_images(accuracy, record["dataset"]["test_images"]):
        yield "a test accuracy that is not that of its images"
    readings, start = record["communication"]["readings"], record["startup"]
    instruments = (*record["in_memory"], *readings, *record["device_time"])
    if any(row["rank"] >= processes for row in instruments):
        yield "instruments of other ranks"
    if not all(map(_adds_up, readings)):
        yield "communication that is not its parts"
    if start and not math.isclose(sum(start.values()), 2 * start["total"]):
        yield "a start that is not its phases"
    if (record["model"]["gradient_bytes"] or 0) != 4 * (record["model"]["parameters"] or 0):
        yield "gradients not as many as parameters"


def _adds_up(reading: Any) -> bool:
    """Return whether all communication of a traced rank is what is exposed and what is hidden."""
    if "overlapped_seconds" not in reading:
        return True
    parts = reading["exposed_seconds"] + reading["overlapped_seconds"]
    return math.isclose(reading["communication_seconds"], parts, rel_tol=1e-6)
