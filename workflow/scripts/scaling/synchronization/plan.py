"""Options of the synchronization experiments. Does not import torch."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from scaling.core import environment
from scaling.core.environment import Device
from scaling.core.grid import Cell
from scaling.core.records.kind import DATASET
from scaling.core.training_options import DataOptions, Limits, Model, Sgd, Synchronization
from scaling.launch.run_spec import RunSpec

Buffers = Literal["broadcast", "local", "sync_batch_norm"]
"""How batch norm's running statistics are kept: broadcast from rank 0 before each forward pass
(DistributedDataParallel's default), separate on each rank, or computed over the batches of all
ranks (torch.nn.SyncBatchNorm)."""
SHARED = ["model", *Sgd.model_fields, *Limits.model_fields]
"""Options that all trainings have as the plan."""
WITHOUT_MESSAGES = ("compile", "cuda_graph", "fused_norms")
"""Switches of recipe tuned that change no message, and are off here."""


@dataclass(frozen=True, kw_only=True)
class Training:
    """What is trained; without `set_epoch` the sampler stays at epoch 0."""

    recipe: Literal["plain", "tuned"] = "plain"
    strategy: str = "ddp"
    buffers: Buffers = "broadcast"
    set_epoch: bool = True
    seed: int


class Plan(Synchronization, DataOptions, Sgd, Limits):
    """Options of the synchronization experiments; trainings differ only in seed and mode."""

    model: Model = Model()
    """What is trained."""
    output: Path
    """The record to write."""
    tuned_options: dict[str, Any] | None = None
    """Options of recipe tuned, of which only the messages are recorded; none without them."""
    gpus: int = 2
    """GPUs, 2 or more; on a CPU, processes."""
    device: Device = "auto"
    """Where to train; `auto` means GPUs where one is visible."""

    @property
    def images(self) -> int:
        """The number of training images."""
        there: int = DATASET.read(self.manifest)["train_images"]
        return min(there, self.train_images or there)

    def training(self, **chosen: Any) -> Training:
        """Return a training from the first seed."""
        return Training(seed=self.seeds[0], **chosen)

    @property
    def trainings(self) -> list[Training]:
        """Return trainings with and without `set_epoch` per seed, and one per buffer mode."""
        orders = [
            Training(set_epoch=set_epoch, seed=seed)
            for seed in self.seeds
            for set_epoch in (True, False)
        ]
        # SyncBatchNorm needs GPUs.
        kinds = ["local", "sync_batch_norm"] if self._on_gpus else ["local"]
        return [*orders, *(self.training(buffers=kind) for kind in kinds)]

    @property
    def modes(self) -> dict[str, Training]:
        """Return the modes of parallel training, by name, whose messages ranks record here."""
        modes: dict[str, dict[str, Any]] = {
            "ddp": {},
            "ddp, buffers local": {"buffers": "local"},
            **({"ddp, SyncBatchNorm": {"buffers": "sync_batch_norm"}} if self._on_gpus else {}),
            "fsdp": {"strategy": "fsdp"},
            "zero1": {"strategy": "zero1"},
            # Last, as recipe tuned sets precision and algorithms for the whole process.
            **({"tuned": {"recipe": "tuned"}} if self.tuned_options else {}),
        }
        return {name: self.training(**chosen) for name, chosen in modes.items()}

    @property
    def _on_gpus(self) -> bool:
        return environment.resolve_device(self.device) == "cuda"

    def spec_of(self, training: Training) -> RunSpec:
        """Return the parameters of a training, or of one step, on the plan's number of GPUs."""
        tuned = training.recipe == "tuned"
        options = {**(self.tuned_options or {}), **dict.fromkeys(WITHOUT_MESSAGES, False)}
        return RunSpec(
            cell=Cell(
                *(training.recipe, training.strategy, self.gpus),
                *(self.batch_size, training.seed),
            ),
            device=environment.resolve_device(self.device),
            warmup_epochs=1,
            measured_epochs=self.epochs - 1,
            instrumented_iterations=0,
            engine="resident" if tuned else "eager",
            recipe_options=options if tuned else {"loader_workers": self.loader_workers},
            **{key: getattr(self, key) for key in SHARED},
        )
