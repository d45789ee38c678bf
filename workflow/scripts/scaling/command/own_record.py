"""The record of a user's own command: what it printed, and what was read from outside."""

import hashlib
import json
import math
from typing import Any

from scaling.command.from_outside import FromOutside
from scaling.command.printed_epochs import Printed
from scaling.core import environment
from scaling.core.gpu_counters import power_capped_seconds
from scaling.core.records.fields import Status
from scaling.core.records.run import EpochRow, RunRecord
from scaling.core.settling import settling
from scaling.registry import command

UNKNOWN_OF_MODEL = (
    *("parameters", "gradient_bytes", "flops_per_image"),
    "activation_bytes_per_image",
)


def of(
    asked: dict[str, Any],
    verdict: tuple[Status, str | None],
    host: dict[str, Any],
    epochs: list[Printed],
    seconds: float,
    outside: FromOutside,
) -> RunRecord:
    """Return the record of a run that was `asked` for and took `seconds` in all on a `host`.

    `verdict` is its status and message; without a printed epoch the whole run is the only one.
    """
    rows = _rows(epochs, outside, asked)
    accuracies = [each.test_accuracy for each in epochs if each.test_accuracy is not None]
    files = command.files(asked["command"])
    digest = hashlib.sha256(json.dumps([asked, files], sort_keys=True).encode())
    nothing = {"recipe_applied": None, "compiled_batch_sizes": None}
    training = {**asked, "engine": "command", "recipe_options": files, **nothing}
    return RunRecord(
        cell=training.pop("cell"),
        status=verdict[0],
        message=verdict[1],
        dataset={"source": "own"},
        model={"name": "own", "width": 1, "options": {}, "parameters_sha256": []}
        | dict.fromkeys(UNKNOWN_OF_MODEL),
        training=training,
        epochs=rows,
        evaluation={"test_loss": None, "test_accuracy": accuracies[-1]} if accuracies else None,
        settling=settling(rows),
        memory=outside.memory(),
        communication={"backend": None, "bucket_bytes": [], "sent_share": None, "readings": []},
        in_memory=[],
        device_time=_device_time(rows, epochs, outside),
        environment={**host, "config_digest": digest.hexdigest(), "ended": environment.now()},
        startup={"total": epochs[0].end - (epochs[0].seconds or 0)} if epochs else None,
        run_seconds=seconds,
        shutdown_seconds=seconds - epochs[-1].end if epochs else None,
    )


def _rows(epochs: list[Printed], outside: FromOutside, asked: dict[str, Any]) -> list[EpochRow]:
    """Return the epochs as those of a record; those that warm up come first."""
    warmup = min(asked["warmup_epochs"], len(epochs) - 1)
    global_batch = asked["cell"]["gpus"] * asked["cell"]["batch_size"]
    made = []
    for number, epoch in enumerate(epochs, start=1):
        seconds, samples = epoch.seconds or 0.0, epoch.samples or 0
        read = outside.readings(epoch.end - seconds, epoch.end)
        finite = epoch.loss is not None and math.isfinite(epoch.loss)
        made.append(
            EpochRow(
                epoch=number,
                rank=0,
                role="warmup" if number <= warmup else "measured",
                iterations=epoch.steps or math.ceil(samples / global_batch),
                seconds=seconds,
                loader_seconds=None,
                samples=samples,
                train_loss=epoch.loss if finite else None,
                train_accuracy=None,
                power_capped_seconds=power_capped_seconds(read),
                gpu_readings=read,
            )
        )
    return made


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
