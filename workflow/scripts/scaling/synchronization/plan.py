"""What one job of the synchronization experiments does."""

from dataclasses import dataclass, replace
from typing import Any, Literal

from scaling.launch.run_spec import RunSpec

Buffers = Literal["broadcast", "local", "sync_batch_norm"]
"""What becomes of batch norm's running statistics: rank 0's go to all ranks before each forward
pass (DistributedDataParallel's default), each rank keeps its own, or the statistics are computed
over the batches of all ranks (torch.nn.SyncBatchNorm)."""


@dataclass(frozen=True)
class Training:
    """One training with recipe `course`; without `set_epoch` the sampler stays at epoch 0."""

    buffers: Buffers
    set_epoch: bool
    seed: int


@dataclass(frozen=True)
class Plan:
    """All trainings share `spec` but for the seed; `world_sizes` are those whose orders are drawn.

    They train on the first `train_images`. `tuned_options` are those of recipe tuned, of which only
    the messages are recorded.
    """

    spec: RunSpec
    seeds: list[int]
    world_sizes: list[int]
    train_images: int
    tuned_options: dict[str, Any]

    @property
    def kinds(self) -> list[Buffers]:
        """What can become of buffers on these devices, DistributedDataParallel's default first."""
        kinds: list[Buffers] = ["broadcast", "local"]
        if self.spec.device == "cuda":
            kinds.append("sync_batch_norm")
        return kinds

    @property
    def trainings(self) -> list[Training]:
        """With and without `set_epoch` for each seed; buffers otherwise than by default for one."""
        orders = [
            Training("broadcast", told, seed) for seed in self.seeds for told in (True, False)
        ]
        return [*orders, *(Training(kind, True, self.seeds[0]) for kind in self.kinds[1:])]

    def spec_of(self, recipe: str, strategy: str, seed: int) -> RunSpec:
        """The parameters of one training, or of one step, on the plan's number of GPUs."""
        cell = replace(self.spec.cell, recipe=recipe, strategy=strategy, seed=seed)
        options = self.tuned_options if recipe == "tuned" else self.spec.recipe_options
        return replace(self.spec, cell=cell, recipe_options=options)
