"""The process of one rank: joins the others, trains, and reports to its rank log."""

import faulthandler
import os
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import torch

from scaling.core import environment
from scaling.core.gpu_counters import GpuCounters, power_capped_seconds
from scaling.core.records.kind import Role
from scaling.launch import launcher, outcome, ranks, stall
from scaling.launch.rank_log import RankLog
from scaling.launch.ranks import Rank
from scaling.launch.run_spec import RunSpec
from scaling.launch.stall import StallError
from scaling.models.build import build, cache_use
from scaling.registry.engine import ENGINES
from scaling.registry.strategy import STRATEGIES
from scaling.training import evaluation
from scaling.training.trainer import Trainer, TrainingData


def load(spec: RunSpec) -> None:
    """Import the modules that train the cell of `spec`."""
    ENGINES.find(spec.engine).trainer.load()
    if spec.cell.gpus > 1:
        STRATEGIES.find(spec.cell.strategy).wrap.load()


Instruments = Callable[[Trainer, Rank, int, int], dict[str, Any]]
"""Function of (trainer, rank, GPUs, iterations) that returns measured fields of a record."""


def run(
    spec: RunSpec,
    images: Path,
    manifest: Path,
    log_folder: Path,
    instruments: Instruments,
) -> None:
    """Train this rank's part of `spec` and report to `log_folder`.

    `instruments` run after the last epoch. An out-of-memory error is reported as an outcome and
    ends the process with status 1, so that the launcher ends the other ranks; any other error is a
    failure: traceback and status 1, as is a wait in captured steps for more than
    `spec.collective_timeout_seconds`. Never returns: all reports are on disk, and PyTorch's
    clean-up takes seconds.
    """
    with ranks.process(log_folder, partial(_report, spec)) as log:
        _train(spec, images, manifest, log, instruments)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _report(spec: RunSpec, log: RankLog, error: Exception, **more: int) -> None:
    """Log the error that ends this rank."""
    sys.stderr.flush()
    log.append(
        "outcome",
        {
            "status": outcome.classify(error) or "failed",
            "time": time.time(),
            "message": outcome.first_sentence(error),
            "memory": memory(spec),
            **more,
        },
    )


def _stalled(log: RankLog, spec: RunSpec, error: StallError) -> None:
    """End this rank from the watchdog thread; the main thread waits for a stalled device."""
    try:
        at = error.position
        _report(spec, log, error, launched=at.launched, finished=at.finished)
        said = f"Rank {log.rank} made no progress; stacks of all threads:"
        print(said, file=sys.stderr, flush=True)
        faulthandler.dump_traceback()
        time.sleep(stall.REPORT_GRACE_SECONDS)
    finally:
        os._exit(1)


def _train(
    spec: RunSpec,
    images: Path,
    manifest: Path,
    log: RankLog,
    instruments: Instruments,
) -> None:
    rank = ranks.join(spec.device, spec.cpu_threads, spec.collective_timeout_seconds)
    dataset = TrainingData.read(images, manifest)
    torch.manual_seed(spec.cell.seed)
    classes = len(dataset.data.classes)
    model = build(spec.model, classes).to(rank.device)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    log.append("start", {**ranks.versions(spec.device), "parameters": parameters})

    trainer: Trainer = ENGINES.find(spec.engine).trainer.load()(spec, rank, model, dataset)
    log.append("startup", {"seconds": launcher.elapsed()})
    if trainer.progress:
        give_up = partial(_stalled, log, spec)
        stall.watch(trainer.progress.position, spec.collective_timeout_seconds, give_up)
    counters = GpuCounters(environment.visible_gpus() if spec.device == "cuda" else [])
    taken: dict[Role, list[float]] = {"warmup": [], "measured": []}
    epoch, evaluated = 0, None
    while role := spec.next_role(**taken):
        epoch += 1
        counters.read()
        result = asdict(trainer.run_epoch(epoch))
        read = counters.read()
        about: Any = {"power_capped_seconds": power_capped_seconds(read), "gpu_readings": read}
        log.append("epoch", {"epoch": epoch, "role": role, **result, **about})
        # The slowest rank's, so that all ranks decide alike.
        taken[role].append(max(rank.gather(result["seconds"])))
        if rank.is_first:
            _print_progress(epoch, role, result)
        if epoch == spec.epochs and spec.next_role(**taken):
            evaluated = [part.to("cpu", copy=True) for part in evaluation.own_parts(model)]
    peak = memory(spec)
    # Evaluated after equal epochs in all cells, however many one needed until steady.
    if evaluated:
        for part, value in zip(evaluation.own_parts(model), evaluated, strict=True):
            part.copy_(value)
    # A sharded model needs all ranks to run.
    evaluates = rank.is_first or not STRATEGIES.find(spec.cell.strategy).replicates
    test = evaluation.evaluate(model, dataset, rank.device) if evaluates else None
    digest = evaluation.sha256(model.parameters())
    # On a new model: a sharded or compiled one cannot run on the meta device.
    side = dataset.data.train_images.shape[1]
    counted = evaluation.count_step(build(spec.model, classes), (3, side, side))
    rank.barrier()
    log.append(
        "end",
        {
            "memory": peak,
            "evaluation": test,
            "parameters_sha256": digest,
            "communication": {
                "backend": ranks.backend(spec.device) if spec.cell.gpus > 1 else None,
                "bucket_bytes": trainer.replica.bucket_bytes,
                "sent_share": trainer.replica.sent_share,
            },
            "applied": trainer.applied,
            "compiled_batch_sizes": trainer.compiled_batch_sizes,
            "compiled_graphs": cache_use(),
            "flops_per_image": counted.flops,
            "activation_bytes_per_image": counted.activation_bytes,
        },
    )
    found: dict[str, Any] = {"in_memory": None, "readings": [], "device_time": [], "step": []}
    if spec.instrumented_iterations:
        found = instruments(trainer, rank, spec.cell.gpus, spec.instrumented_iterations)
    log.append("readings", found)
    rank.barrier()
    trainer.close()
    rank.leave()


def memory(spec: RunSpec) -> dict[str, Any]:
    """Return `kind`, and the `peak_bytes` of each device, or of this process on a CPU.

    Peak memory is allocated on a device, or resident on a host; `capacity_bytes` is its total.
    """
    if spec.device == "cuda":
        devices = range(torch.cuda.device_count()) if "RANK" not in os.environ else [None]
        peaks = [torch.cuda.max_memory_allocated(device) for device in devices]
        capacity = torch.cuda.get_device_properties(torch.cuda.current_device()).total_memory
        return {"kind": "device", "peak_bytes": peaks, "capacity_bytes": capacity}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    capacity = psutil.virtual_memory().total
    return {"kind": "host", "peak_bytes": [peak], "capacity_bytes": capacity}


def _print_progress(epoch: int, role: Role, result: dict[str, Any]) -> None:
    loss = "not finite" if result["train_loss"] is None else f"{result['train_loss']:.4f}"
    print(
        f"epoch {epoch} ({role}): {result['seconds']:.3f} s, "
        f"waiting for data {result['loader_seconds']:.3f} s, "
        f"loss {loss}, accuracy {100 * (result['train_accuracy'] or 0):.1f} %",
        flush=True,
    )
