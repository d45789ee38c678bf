"""Run one cell of the grid and write its record."""

from pathlib import Path
from typing import Any

from scaling.core import environment
from scaling.core.records.dataset import DATASET
from scaling.core.records.run import RUN, RunRecord
from scaling.core.settling import settling
from scaling.launch import rank_log, startup_clock
from scaling.launch.launcher import ProcessResult
from scaling.launch.measure import launch_ranks
from scaling.launch.outcome import verdict
from scaling.launch.rank_log import LinesByKind
from scaling.launch.run_spec import RunSpec
from scaling.registry.strategy import STRATEGIES

BYTES_PER_PARAMETER = 4


def supervise(spec: RunSpec, manifest: Path, output: Path, command_line: list[str]) -> RunRecord:
    """Run the cell of `spec` by `command_line` and write its record to `output`.

    An infeasible cell, a lack of memory, divergence and a time-out are recorded as a status. Any
    other failure raises UserError and leaves no record.
    """
    dataset = DATASET.read(manifest)
    host_info = environment.describe(spec.device)
    reason = infeasible_reason(spec, dataset["train_images"])
    lines: list[dict[str, Any]] = []
    result = ProcessResult(0, timed_out=False)
    if reason is None:
        result, lines = launch_ranks(
            command_line,
            output,
            spec.device,
            spec.cell.gpus // spec.nodes,
            spec.cpu_threads,
            spec.time_limit_seconds,
        )
    record = assemble(spec, dataset, host_info, lines, result, reason)
    RUN.write(output, record)
    return record


def infeasible_reason(spec: RunSpec, train_images: int) -> str | None:
    """Return why the cell can never run (global batch above the dataset's size), or None."""
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
    machine = len(environment.gpu_names())
    if spec.device == "cuda" and cell.gpus > machine * spec.nodes:
        return f"{cell.gpus // spec.nodes} GPUs are asked for and the machine has {machine}"
    return None


def assemble(
    spec: RunSpec,
    dataset: dict[str, Any],
    host_info: dict[str, Any],
    lines: list[dict[str, Any]],
    result: ProcessResult,
    infeasible: str | None,
) -> RunRecord:
    """Return the record made from the ranks' reports; UserError when the processes failed."""
    by_kind = rank_log.by_kind(lines)
    status, message = ("infeasible", infeasible) if infeasible else verdict(spec, by_kind, result)
    first_start = next(iter(by_kind["start"]), {})
    first_end = next((end for end in by_kind["end"] if end["rank"] == 0), {})
    parameters = first_start.get("parameters")
    startups, ends, read = by_kind["startup"], by_kind["end"], by_kind["readings"]
    epochs: list[Any] = [
        {key: value for key, value in line.items() if key != "kind"} for line in by_kind["epoch"]
    ]
    epochs.sort(key=lambda row: (row["epoch"], row["rank"]))
    return RunRecord(
        cell=vars(spec.cell).copy(),
        status=status,
        message=message,
        dataset={
            key: dataset[key]
            for key in ("source", "checksum", "train_images", "test_images", "image_shape")
        },
        model={
            "name": spec.model,
            "width": spec.model_width,
            "options": spec.model_options,
            "parameters": parameters,
            "gradient_bytes": parameters and parameters * BYTES_PER_PARAMETER,
            **{
                key: first_end.get(key) for key in ("flops_per_image", "activation_bytes_per_image")
            },
            "parameters_sha256": [end["parameters_sha256"] for end in ends],
        },
        training={
            **spec.parameters(),
            "recipe_applied": first_end.get("applied"),
            **{key: first_end.get(key) for key in ("compiled_batch_sizes", "compiled_graphs")},
        },
        epochs=epochs,
        evaluation=first_end.get("evaluation"),
        settling=settling(epochs),
        memory=_memory(by_kind),
        communication={
            **first_end.get(
                "communication", {"backend": None, "bucket_bytes": [], "sent_share": None}
            ),
            "readings": [reading for line in read for reading in line["readings"]],
        },
        in_memory=[line["in_memory"] for line in read if line["in_memory"]],
        device_time=[device for line in read for device in line["device_time"]],
        environment={
            **host_info,
            **environment.leased_gpus(result.gpus),
            **environment.seen_by(by_kind["start"]),
            "config_digest": spec.digest(),
            "ended": environment.now(),
        },
        startup=startup_clock.merge(startups) if len(startups) == spec.processes else None,
        run_seconds=result.seconds or None,
        shutdown_seconds=(
            result.seconds - max(line["seconds"] for line in read)
            if len(read) == spec.processes
            else None
        ),
    )


def _memory(by_kind: LinesByKind) -> dict[str, Any]:
    reports = [line["memory"] for line in [*by_kind["end"], *by_kind["outcome"]]]
    return {
        "kind": reports[0]["kind"] if reports else None,
        "peak_bytes": [peak for report in reports for peak in report["peak_bytes"]],
        "capacity_bytes": reports[0].get("capacity_bytes") if reports else None,
    }


def summary(record: RunRecord) -> str:
    """Return a short text on the run: status, last epoch, accuracy, memory."""
    cell, message = record["cell"], record["message"]
    lines = [
        f"{cell['recipe']}/{cell['strategy']} on {cell['gpus']} x "
        f"{record['environment']['device']}, batch {cell['batch_size']} per GPU: "
        f"{record['status']}" + (f" ({message})" if message else "")
    ]
    if record["epochs"]:
        last = [row for row in record["epochs"] if row["epoch"] == record["epochs"][-1]["epoch"]]
        seconds = max(row["seconds"] for row in last)
        waits = [row["loader_seconds"] for row in last if row["loader_seconds"] is not None]
        known = f", {seconds - max(waits):.3f} s without data loading" if waits else ""
        lines.append(f"last epoch: {seconds:.3f} s{known}")
    if record["evaluation"] and record["status"] == "ok":
        lines.append(f"test accuracy: {100 * record['evaluation']['test_accuracy']:.2f} %")
    if record["memory"]["peak_bytes"]:
        peak = max(record["memory"]["peak_bytes"]) / 1e9
        lines.append(f"peak {record['memory']['kind']} memory of a process: {peak:.2f} GB")
    return "\n".join(lines)
