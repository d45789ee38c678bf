"""How long an all-reduce takes: one process of the interconnect sweep."""

import os
import traceback
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import torch
import torch.distributed as dist

from scaling.core.environment import Device
from scaling.launch import launcher, ranks
from scaling.launch.rank_log import RankLog
from scaling.launch.ranks import Rank
from scaling.models.resnet import ResNet18
from scaling.training import distributed_data_parallel, flat_sgd

BYTES_PER_ELEMENT = 4
SETTLING_STEPS = 3


@dataclass(frozen=True)
class Sweep:
    """What to measure. A repeat times `iterations` all-reduces back to back, as nccl-tests does."""

    device: Device
    message_bytes: list[int]
    model_width: int
    classes: int
    warmup: int
    repeats: int
    iterations: int
    timeout_seconds: float


def run(sweep: Sweep, log_folder: Path) -> None:
    """Measure every size with the other ranks; rank 0 reports to `log_folder`.

    Any error ends the process with status 1, so that the launcher ends the other ranks.
    """
    launcher.die_with_parent()
    log = RankLog(log_folder, int(os.environ["RANK"]))
    try:
        rank = ranks.join(sweep.device, cpu_threads=1, timeout_seconds=sweep.timeout_seconds)
        log.append("start", ranks.versions(sweep.device))
        gradient_bytes, buckets, tuned_buckets = _messages(sweep, rank)
        messages = [
            *(("sweep", size) for size in sweep.message_bytes),
            *(("bucket", size) for size in buckets),
            *(("tuned_bucket", size) for size in tuned_buckets),
            ("gradients", gradient_bytes),
        ]
        # Without it the first size, whichever it is, takes twice its time.
        _measure(sweep, rank, max(size for _, size in messages))
        for kind, size in messages:
            seconds, correct = _measure(sweep, rank, size)
            if rank.is_first:
                row = {"message_bytes": size, "seconds": seconds, "correct": correct}
                log.append(kind, row)
                print(f"{kind} {size} B: {min(seconds):.3e} to {max(seconds):.3e} s", flush=True)
        log.append("end", {"gradient_bytes": gradient_bytes})
        rank.barrier()
        ranks.leave(rank)
    except Exception:
        traceback.print_exc()
        os._exit(1)


def _messages(sweep: Sweep, rank: Rank) -> tuple[int, list[int], list[int]]:
    """Bytes of all gradients, of DDP's buckets once it has settled, and of recipe tuned's."""
    model = ResNet18(sweep.model_width, sweep.classes).to(rank.device)
    replica = distributed_data_parallel.wrap(model, rank, rank.processes)
    for _ in range(SETTLING_STEPS):
        replica.model(torch.randn(2, 3, 32, 32, device=rank.device)).sum().backward()
    parameters = sum(parameter.numel() for parameter in model.parameters())
    return parameters * BYTES_PER_ELEMENT, replica.bucket_bytes, flat_sgd.bucket_bytes(model)


def _measure(sweep: Sweep, rank: Rank, message_bytes: int) -> tuple[list[float], bool]:
    """Seconds of one all-reduce in each repeat, of the slowest rank, and whether sums are right."""
    elements = message_bytes // BYTES_PER_ELEMENT
    pattern = (torch.arange(elements, device=rank.device, dtype=torch.float32) % 1021) + 1
    first_sum = rank.processes * (rank.processes + 1) / 2
    expected = pattern * first_sum * rank.processes ** (sweep.iterations - 1)
    own_seconds = []
    correct = True
    for repeat in range(sweep.warmup + sweep.repeats):
        message = pattern * (rank.index + 1)
        rank.barrier()
        rank.synchronize(1)
        started = perf_counter()
        for _ in range(sweep.iterations):
            dist.all_reduce(message)
        rank.synchronize(1)
        if repeat >= sweep.warmup:
            own_seconds.append((perf_counter() - started) / sweep.iterations)
        correct = correct and torch.allclose(message, expected, rtol=1e-5)
    everyone: list[tuple[list[float], bool]] = [([], False)] * rank.processes
    dist.all_gather_object(everyone, (own_seconds, correct))
    slowest = [max(times) for times in zip(*(seconds for seconds, _ in everyone), strict=True)]
    return slowest, all(right for _, right in everyone)
