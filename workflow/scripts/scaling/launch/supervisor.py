"""Train one run of the grid and write its record."""

import gzip
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

from scaling.core import code_digest, environment, files
from scaling.core.grid import TRACE, TRACE_BYTES, Cell
from scaling.core.records.kind import DATASET, Status
from scaling.core.records.run import RUN, RunRecord
from scaling.core.statistics import settling
from scaling.launch.launcher import ProcessResult
from scaling.launch.measure import launch_ranks
from scaling.launch.outcome import verdict
from scaling.launch.run_spec import INSTRUMENTS, WORKER, RunSpec
from scaling.registry.engine import measuring_code
from scaling.registry.strategy import STRATEGIES

COUNTED = "whole boards of the configuration's GPUs; their idle power is not subtracted"
OF_DATASET = ("source", "checksum", "train_images", "test_images", "image_shape")


def supervise(
    spec: RunSpec, images: Path, manifest: Path, output: Path, worker: str = WORKER
) -> RunRecord:
    """Train run `spec`, write its record to `output`, and return the record.

    Each node calls the function `worker` (`module:name`). `images` and `manifest` are the dataset's
    files. An impossible run is not started; its status is `infeasible`.
    """
    dataset = DATASET.read(manifest)
    status: Status = "infeasible"
    if message := infeasible_reason(spec, dataset["train_images"]):
        found = environment.completed(environment.describe(spec.device))
        result = ProcessResult(0, False, environment=found)
    else:
        given: dict[str, Any] = {"spec": spec.model_dump(mode="json"), "instruments": INSTRUMENTS}
        given |= {"images": images, "manifest": manifest}
        result = launch_ranks(worker, given, spec, output, spec.cell.gpus)
        status, message = verdict(spec, result)
    record = record_of(spec, result, status, message)
    record["dataset"] = {key: dataset[key] for key in OF_DATASET}
    for before in output.parent.glob(f"*{TRACE}*"):
        before.unlink()
    if steps := [event for line in result.lines["readings"] for event in line["step"]]:
        write_trace(output.with_name(TRACE), steps)
    RUN.write(output, record)
    return record


def record_of(
    spec: RunSpec, result: ProcessResult, status: Status, message: str | None
) -> RunRecord:
    """Return a run's record from its status and the reports of its ranks. `dataset` stays empty."""
    lines = result.lines
    ends, read, startups = lines["end"], lines["readings"], lines["startup"]
    end = next((line for line in ends if line["rank"] == 0), {})
    parameters = next((line["parameters"] for line in lines["start"]), None)
    epochs = sorted(lines["epoch"], key=lambda row: (row["epoch"], row["rank"]))
    reports = {line["rank"]: line["memory"] for line in [*ends, *lines["outcome"]]}
    memory = next(iter(reports.values()), {"kind": None, "capacity_bytes": None})
    silent: dict[str, Any] = {"backend": None, "bucket_bytes": [], "sent_share": None}
    startup = None
    if len(startups) == spec.processes:  # Clocks of nodes differ.
        here = startups[: spec.processes // spec.nodes]
        startup = {key: max(line[key] for line in here) for key in ("total", "cudnn_search")}
    return RunRecord(
        cell=vars(spec.cell).copy(),
        status=status,
        message=message,
        dataset={},
        model={
            **spec.model.model_dump(),
            "parameters": parameters,
            "gradient_bytes": parameters and 4 * parameters,
            "flops_per_image": end.get("flops_per_image"),
            "parameters_sha256": [
                line["parameters_sha256"] for line in ends if "parameters_sha256" in line
            ],
        },
        training={
            **spec.parameters(),
            "recipe_applied": end.get("applied"),
            "compiled_graphs": end.get("compiled_graphs"),
        },
        epochs=epochs,
        energy=[row | {"counts": COUNTED} for row in lines["energy"]],
        evaluation=end.get("evaluation"),
        settling=settling(epochs),
        memory=memory
        | {"peak_bytes": [peak for report in reports.values() for peak in report["peak_bytes"]]},
        communication={
            **end.get("communication", silent),
            "readings": [reading for line in read for reading in line["readings"]],
        },
        in_memory=[line["in_memory"] for line in read if line["in_memory"]],
        device_time=[device for line in read for device in line["device_time"]],
        environment=result.environment
        | code_digest.described(*measuring_code(spec.engine, spec.model.name)),
        startup=startup,
        run_seconds=result.seconds or None,
    )


def write_trace(target: Path, events: list[dict[str, Any]]) -> None:
    """Write the trace events of all ranks as gzipped JSON, unless it exceeds `TRACE_BYTES`."""
    content = gzip.compress(json.dumps({"traceEvents": nested(events)}).encode(), mtime=0)
    if len(content) > TRACE_BYTES:
        print(f"one step of each rank takes {len(content):,} bytes, too many to keep its trace")
        return
    with files.atomic_path(target) as temporary:
        temporary.write_bytes(content)


def nested(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Change `events` in place so that Perfetto shows all of them; return `events`.

    Times, in µs, become relative to the first event. If two events of a thread overlap in part,
    Perfetto would drop one, so the earlier event is shortened.
    """
    spans = [event for event in events if event["ph"] == "X"]
    spans.sort(key=lambda event: (event["pid"], str(event["tid"]), event["ts"], -event["dur"]))
    first = min((event["ts"] for event in spans), default=0.0)
    for event in spans:
        event |= {"ts": round(event["ts"] - first, 3), "dur": round(event["dur"], 3)}
    for one, after in pairwise(spans):
        room = round(after["ts"] - one["ts"], 3)
        same = (one["pid"], one["tid"]) == (after["pid"], after["tid"])
        if same and room < one["dur"] < room + after["dur"]:
            one["dur"] = room
    return events


def infeasible_reason(spec: RunSpec, train_images: int) -> str | None:
    """Return why a run is impossible, such as too large a global batch; None if it is possible."""
    cell = spec.cell
    if cell.global_batch_size > train_images:
        return (
            f"a global batch of {cell.gpus}·{cell.batch_size} = {cell.global_batch_size} samples "
            f"is larger than the {train_images} training images"
        )
    if cell.batch_size % spec.micro_batches:
        return f"a batch of {cell.batch_size} does not divide into {spec.micro_batches} parts"
    strategy = STRATEGIES.find(cell.strategy)
    if spec.nodes > 1 and not strategy.spans_nodes:
        return f"{strategy.title} is one process and cannot reach the GPUs of {spec.nodes} machines"
    if spec.device == "cuda" and cell.gpus > (machine := len(environment.gpu_names())) * spec.nodes:
        return f"{cell.gpus // spec.nodes} GPUs are asked for and the machine has {machine}"
    return None


def summary(record: RunRecord) -> str:
    """Return one line about a run for its log: configuration, status, message and accuracy."""
    tested = record["evaluation"] if record["status"] == "ok" else None
    accuracy = f", test accuracy {100 * tested['test_accuracy']:.2f} %" if tested else ""
    message = f" ({record['message']})" if record["message"] else ""
    return f"{Cell(**record['cell'])}: {record['status']}{message}{accuracy}"
