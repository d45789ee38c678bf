"""Time steps of DistributedDataParallel that was told something, in turn with those of a plain one.

All are recipe `plain` on batches in memory, with gradient exchange and without.
"""

import gc
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook

from scaling.config.knobs import Knobs
from scaling.instruments.messages import Messages, collectives
from scaling.launch import measure
from scaling.launch.ranks import Rank
from scaling.launch.run_spec import RunSpec
from scaling.synchronization.training import fresh
from scaling.training.plain import Plain
from scaling.training.trainer import TrainingData

SETTLED = 3
"""Steps after which buckets and a static graph are settled, and PowerSGD is at work: it may not
start before the third."""


def run(spec: RunSpec, knobs: Knobs, images: Path, manifest: Path, log_folder: Path) -> None:
    """Compare each of `knobs.named` with a plain one; rank 0 reports `row`s to `log_folder`.

    A row has the `knob`, how many `batches` it sends for at once, the `iterations` (batches) timed
    together, the `messages` of one update, and the times of `own` and `plain` steps as taken in
    turn: plain, own, plain, …, plain (`Steps.time`).
    """
    timeout = spec.collective_timeout_seconds
    with measure.joined(log_folder, spec.device, spec.cpu_threads, timeout) as (rank, log):
        dataset = TrainingData.read(images, manifest)
        whole = len(dataset.data.train_labels) // spec.cell.global_batch_size
        limit = min(max(knobs.iterations, knobs.most_batches), whole)
        plain = Steps(spec, rank, dataset, limit)
        for name, told in knobs.named.items():
            batches = told.get("accumulated_batches", 1)
            iterations = limit // batches * batches
            row: dict[str, Any] = {"knob": name, "batches": batches, "iterations": iterations}
            own = Steps(spec, rank, dataset, limit, **told)
            row["messages"] = own.messages()
            turns = [plain, own] * (1 + knobs.repeats) + [plain]
            # The first of each is a warm-up.
            times = [one.time(iterations) for one in turns][2:]
            row |= {"plain": times[::2], "own": times[1::2]}
            # Its hooks refer to it, and it to them.
            del own, turns
            gc.collect()
            if rank.is_first:
                log.append("row", row)
                print(name, flush=True)


class Steps:
    """Steps of recipe `plain` on `limit` batches, with DistributedDataParallel that was `told`."""

    def __init__(
        self, spec: RunSpec, rank: Rank, dataset: TrainingData, limit: int, **told: Any
    ) -> None:
        self._rank, self._batches = rank, told.pop("accumulated_batches", 1)
        in_bf16, low_rank = told.pop("bf16_compression", False), told.pop("powersgd_rank", 0)
        cell = replace(spec.cell, batch_size=self._batches * spec.cell.batch_size)
        spec = replace(spec, cell=cell, micro_batches=self._batches)
        self._trainer = Plain(spec, rank, fresh(spec, rank, dataset), dataset, **told)
        register: Any = self._trainer.model.register_comm_hook
        if low_rank:
            state = powerSGD_hook.PowerSGDState(None, low_rank, start_powerSGD_iter=SETTLED - 1)
            hook: Any = powerSGD_hook.powerSGD_hook
            register(state, default_hooks.bf16_compress_wrapper(hook) if in_bf16 else hook)
        elif in_bf16:
            register(None, default_hooks.bf16_compress_hook)
        self._train = self._trainer.in_memory(limit // self._batches)

    def messages(self) -> list[dict[str, Any]]:
        """Record the messages of one update, once they are what they stay."""
        for _ in range(SETTLED):
            self._train(1)
        found = Messages()
        with found.phases_of(self._trainer.model), collectives(found):
            self._train(1)
            found.phase = None
        return found.rows

    def time(self, iterations: int) -> dict[str, list[float]]:
        """Time so many batches with gradient exchange (`seconds`) and without; lists by rank."""
        found, alone = {}, self._trainer.without_communication()
        for name, exchange in (("seconds", None), ("seconds_without_exchange", alone)):
            with exchange or nullcontext():
                self._train(1)
                result = self._train(iterations // self._batches)
            found[name] = self._rank.gather(result.seconds)
        return found
