"""Time all-reduces of many sizes, and the messages that a training step of the model sends."""

import copy
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter

import torch
import torch.distributed as dist

from scaling.core.records.kind import DATASET
from scaling.launch import ranks
from scaling.launch.measure import Sweep
from scaling.launch.ranks import Rank
from scaling.models.build import LEAST_BATCH, build
from scaling.training import strategies
from scaling.training.captured_steps import captured
from scaling.training.foreach_sgd import ForeachSGD

BYTES_PER_ELEMENT = 4
SETTLING_STEPS = 3
MOST_BYTES_ON_CPU = 2**24


def start(options: Sweep, folder: Path) -> None:
    """Start `options.gpus` processes. Each calls `run(options, folder)`."""
    ranks.start(options.gpus, run, options, folder)


def run(sweep: Sweep, log_folder: Path) -> None:
    """Time messages of each kind and size on all ranks. Rank 0 logs one row per kind and size.

    `seconds` and `start_skew_seconds` are lists with one value per repeat. `seconds` is the time
    per message on the slowest rank. `start_skew_seconds` is the slowest rank's time of the repeat
    minus the fastest rank's, because a rank that starts early waits for the last rank.
    """
    joined = ranks.joined(log_folder, sweep.device, 1, sweep.time_limit_seconds)
    with joined as (rank, log):
        # On a CPU, larger messages take minutes.
        most = math.inf if rank.device.type == "cuda" else MOST_BYTES_ON_CPU
        messages = _of_model(sweep, rank)
        gradients = dict(messages)["gradients"]
        log.append("model", {"gradient_bytes": gradients})
        # Warm-up: without it, the first size takes twice as long.
        _measure(sweep, rank, "sweep", gradients)
        messages += [("sweep", size) for size in sorted(sweep.message_bytes) if size <= most]
        for kind, size in messages:
            seconds, skew, correct = _measure(sweep, rank, kind, size)
            if rank.is_first:
                row = {"kind": kind, "message_bytes": size, "seconds": seconds, "correct": correct}
                row["launch"] = "graph" if rank.device.type == "cuda" else "eager"
                log.append("row", {"row": row | {"start_skew_seconds": skew}})
                print(f"{kind} {size} B: {min(seconds):.3e} to {max(seconds):.3e} s", flush=True)


def _of_model(sweep: Sweep, rank: Rank) -> list[tuple[str, int]]:
    """Return (kind, size in bytes) of each message that a training step of the model sends.

    Kind `bucket` is a gradient bucket: first those of default DDP, then those of recipe `tuned`,
    both as DDP rebuilds them after some steps. `broadcast` and `reduce` are messages of
    DataParallel (on GPUs only). `gradients` is a single message with all gradients.
    """
    described = DATASET.read(sweep.manifest)
    side, *_ = described.get("image_shape", [32])
    model = build(sweep.model, len(described.get("classes", range(10)))).to(rank.device)
    flat = ForeachSGD(copy.deepcopy(model), rank.processes, torch.bfloat16)
    tuned = flat.parallel(flat.model)
    plain = strategies.ddp(model, rank, rank.processes)
    for _ in range(SETTLING_STEPS):
        images = torch.randn(LEAST_BATCH, 3, side, side, device=rank.device)
        plain.model(images).sum().backward()
        with torch.autocast(rank.device.type, torch.bfloat16):
            loss = tuned(images).sum()
        loss.backward()
        flat.aside.join()
    copies = ("broadcast", "reduce") if rank.device.type == "cuda" else ()
    return [
        *(("bucket", size) for size in plain.bucket_bytes + flat.bucket_bytes),
        *((kind, size) for kind in copies for size in strategies.message_bytes(model)),
        ("gradients", sum(parameter.nbytes for parameter in model.parameters())),
    ]


def _measure(
    sweep: Sweep, rank: Rank, kind: str, message_bytes: int
) -> tuple[list[float], list[float], bool]:
    """Return seconds per message and start skew of each repeat, and whether all results are right.

    `run` defines both times. The message is an all-reduce, unless `kind` is `broadcast` or
    `reduce`. On GPUs, a CUDA graph launches all messages of a repeat, because a launch from Python
    takes longer than a small message.
    """
    elements = message_bytes // BYTES_PER_ELEMENT
    pattern = (torch.arange(elements, device=rank.device, dtype=torch.float32) % 1021) + 1
    total = rank.processes * (rank.processes + 1) / 2
    send: Callable[[torch.Tensor], object] = dist.all_reduce
    factor = total * rank.processes ** (sweep.iterations - 1)
    if kind == "broadcast":
        send, factor = partial(dist.broadcast, src=0), 1
    elif kind == "reduce":  # Only rank 0 receives the sum.
        send, factor = partial(dist.reduce, dst=0), 1 + sweep.iterations * (total - 1)
    own_seconds, correct, message = [], True, torch.empty_like(pattern)

    def begin() -> None:
        message.copy_(pattern * (rank.index + 1))

    def reduce() -> None:
        for _ in range(sweep.iterations):
            send(message)

    run = captured(begin, reduce).replay if rank.device.type == "cuda" else reduce
    for repeat in range(sweep.warmup + sweep.repeats):
        begin()
        rank.barrier()
        rank.synchronize(1)
        started = perf_counter()
        run()
        rank.synchronize(1)
        if repeat >= sweep.warmup:
            own_seconds.append((perf_counter() - started) / sweep.iterations)
        judged = rank.is_first or kind != "reduce"
        correct = correct and (not judged or torch.allclose(message, pattern * factor, rtol=1e-5))
    seconds, right = zip(*rank.gather((own_seconds, correct)), strict=True)
    repeats = list(zip(*seconds, strict=True))
    skew = [(max(times) - min(times)) * sweep.iterations for times in repeats]
    return list(map(max, repeats)), skew, all(right)
