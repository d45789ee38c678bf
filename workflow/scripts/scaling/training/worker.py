"""The process of one rank, which joins the process group, trains, and writes the rank's log."""

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
from torch import nn

from scaling.core import environment
from scaling.core.gpu_counters import GpuCounters, power_capped_seconds
from scaling.core.records.kind import Role
from scaling.data import dataset as data
from scaling.data.dataset import ImageDataset
from scaling.launch import launcher, outcome, ranks, stall
from scaling.launch.launcher import RankLog
from scaling.launch.ranks import Rank
from scaling.launch.run_spec import RunSpec
from scaling.launch.stall import StallError
from scaling.models.build import build, cache_use
from scaling.registry.engine import ENGINES
from scaling.registry.registry import Reference
from scaling.registry.strategy import STRATEGIES
from scaling.training import evaluation
from scaling.training.trainer import Trainer


def start(spec: RunSpec, images: Path, manifest: Path, instruments: str, folder: Path) -> None:
    """Start the training processes of `spec`. Each calls `run` and logs to `folder`.

    `instruments` is a function as `module:function`. All modules are imported before the fork.
    """
    ENGINES.find(spec.engine).trainer.load()
    STRATEGIES.find(spec.cell.strategy).wrap.load()
    measure = Reference(instruments).load()
    ranks.start(spec.processes, run, spec, images, manifest, folder, measure)


def run(
    spec: RunSpec, images: Path, manifest: Path, log_folder: Path, instruments: Callable[..., Any]
) -> None:
    """Train as one rank of `spec`; log the results and what `instruments` returns.

    This function ends the process as soon as all reports are on disk, because PyTorch's clean-up
    takes seconds. An error is logged and ends the process with status 1. The launcher then ends all
    other ranks. No progress of captured steps for `spec.collective_timeout_seconds` is an error.
    """
    with ranks.process(log_folder, partial(_report, spec)) as log:
        rank = ranks.join(spec.device, spec.cpu_threads, spec.collective_timeout_seconds)
        dataset = data.read(images, manifest)
        torch.manual_seed(spec.cell.seed)
        model = build(spec.model, len(dataset.classes)).to(rank.device)
        parameters = sum(parameter.numel() for parameter in model.parameters())
        log.append("start", {**ranks.versions(spec.device), "parameters": parameters})
        trainer: Trainer = ENGINES.find(spec.engine).trainer.load()(spec, rank, model, dataset)
        searched = trainer.step.search_seconds
        log.append("startup", {"total": launcher.elapsed(), "cudnn_search": searched})
        if trainer.progress:
            give_up = partial(_stalled, log, spec)
            stall.watch(trainer.progress.position, spec.collective_timeout_seconds, give_up)
        _train(spec, rank, trainer, model, log)
        log.append("end", _end(spec, rank, trainer, model, dataset))
        results: dict[str, Any] = {"in_memory": None, "readings": [], "device_time": [], "step": []}
        if spec.instrumented_iterations:
            results = instruments(trainer, rank, spec.cell.gpus, spec.instrumented_iterations)
        log.append("readings", results)
        rank.barrier()
        trainer.close()
        rank.leave()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _report(spec: RunSpec, log: RankLog, error: Exception, **more: int) -> None:
    """Log the error that ends this rank: status, message, time, memory and the fields `more`."""
    sys.stderr.flush()
    status, message = outcome.classify(error) or "failed", outcome.first_sentence(error)
    about = {"status": status, "time": time.time(), "message": message, "memory": memory(spec)}
    log.append("outcome", about | more)


def _stalled(log: RankLog, spec: RunSpec, error: StallError) -> None:
    """Log a stall and end the process. The watchdog calls this, as the main thread hangs."""
    try:
        at = error.position
        _report(spec, log, error, launched=at.launched, finished=at.finished)
        message = f"Rank {log.rank} made no progress; stacks of all threads:"
        print(message, file=sys.stderr, flush=True)
        faulthandler.dump_traceback()
        time.sleep(stall.REPORT_GRACE_SECONDS)
    finally:
        os._exit(1)


def _train(spec: RunSpec, rank: Rank, trainer: Trainer, model: nn.Module, log: RankLog) -> None:
    """Train until `spec.next_role` returns None, then restore the weights of epoch `spec.epochs`.

    All runs are therefore evaluated after the same number of epochs.
    """
    gpus = environment.visible_gpus() if spec.device == "cuda" else []
    counters, energy, since = GpuCounters(gpus), GpuCounters(gpus), time.perf_counter()
    taken: dict[Role, list[float]] = {"warmup": [], "measured": []}
    epoch, kept, role = 0, [], spec.next_role(**taken)
    while role:
        epoch += 1
        counters.read()
        result = trainer.run_epoch(epoch)
        read = counters.read()
        about: Any = {"power_capped_seconds": power_capped_seconds(read), "gpu_readings": read}
        log.append("epoch", {"epoch": epoch, "role": role, **asdict(result), **about})
        # All ranks use the seconds of the slowest rank, so they decide the same.
        taken[role].append(max(rank.gather(result.seconds)))
        if rank.is_first:
            loss = "not finite" if result.train_loss is None else f"{result.train_loss:.4f}"
            waited = f"{result.seconds:.3f} s, data wait {result.loader_seconds:.3f} s"
            learned = f"loss {loss}, accuracy {100 * result.train_accuracy:.1f} %"
            print(f"epoch {epoch} ({role}): {waited}, {learned}", flush=True)
        before, role = role, spec.next_role(**taken)
        if role != before:
            # Read once per role, because the driver updates counters only every 0.1 s.
            read, now = energy.read(), time.perf_counter()
            capped = power_capped_seconds(read)
            about = {"power_capped_seconds": capped and min(capped, now - since)}
            about |= {"seconds": now - since, "joules": [one["energy_joules"] for one in read]}
            log.append("energy", {"role": before, **about})
            since = now
        if epoch == spec.epochs and role:
            kept = [part.to("cpu", copy=True) for part in evaluation.own_parts(model)]
    # All runs are evaluated after the same number of epochs, also if more were trained.
    for part, value in zip(evaluation.own_parts(model), kept, strict=False):
        part.copy_(value)


def _end(
    spec: RunSpec, rank: Rank, trainer: Trainer, model: nn.Module, dataset: ImageDataset
) -> dict[str, Any]:
    """Evaluate the model; return accuracy, peak memory, communication and applied options."""
    peak = memory(spec)
    # All ranks are needed to run a sharded model.
    evaluates = rank.is_first or not STRATEGIES.find(spec.cell.strategy).replicates
    test = evaluation.evaluate(model, dataset, rank.device) if evaluates else None
    digest = evaluation.sha256(model.parameters())
    # A new model is used: a sharded or compiled one cannot run on the meta device.
    side, classes = dataset.train_images.shape[1], len(dataset.classes)
    flops = evaluation.count_flops(build(spec.model, classes), (3, side, side))
    rank.barrier()
    return {
        "memory": peak,
        "evaluation": test,
        "parameters_sha256": digest,
        "communication": {
            "backend": ranks.backend(spec.device) if spec.cell.gpus > 1 else None,
            "bucket_bytes": trainer.replica.bucket_bytes,
            "sent_share": trainer.replica.sent_share,
        },
        "applied": trainer.applied,
        "compiled_graphs": cache_use(),
        "flops_per_image": flops,
    }


def memory(spec: RunSpec) -> dict[str, Any]:
    """Return peak and capacity (bytes) of GPU memory; on a CPU, of this process and of the host."""
    if spec.device == "cuda":
        devices = range(torch.cuda.device_count()) if "RANK" not in os.environ else [None]
        peaks = [torch.cuda.max_memory_allocated(device) for device in devices]
        capacity = torch.cuda.get_device_properties(torch.cuda.current_device()).total_memory
        return {"kind": "device", "peak_bytes": peaks, "capacity_bytes": capacity}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    capacity = psutil.virtual_memory().total
    return {"kind": "host", "peak_bytes": [peak], "capacity_bytes": capacity}
