"""Options of the synchronization experiments. This module does not import torch."""

from dataclasses import dataclass
from typing import Literal

from scaling.core import environment
from scaling.core.grid import Cell
from scaling.core.records.kind import DATASET
from scaling.core.training_options import DataOptions, Limits, Model, Sgd, Synchronization
from scaling.launch.measure import Measurement
from scaling.launch.run_spec import RunSpec


@dataclass(frozen=True)
class Training:
    """A training of the recipe `plain`. Without `set_epoch`, the sampler remains at epoch 0."""

    seed: int
    strategy: str = "ddp"
    buffers: Literal["broadcast", "local", "sync_batch_norm"] = "broadcast"
    """What ranks do with batch norm's running statistics. `broadcast`: rank 0 sends its own before
    each forward pass (DistributedDataParallel's default). `local`: each rank keeps its own.
    `sync_batch_norm`: all ranks compute them together (torch.nn.SyncBatchNorm)."""
    set_epoch: bool = True


class Plan(Measurement, Synchronization, DataOptions, Sgd, Limits):
    """Options of the synchronization experiments on 2 or more GPUs."""

    model: Model = Model()

    @property
    def images(self) -> int:
        """Return the number of training images in use."""
        there: int = DATASET.read(self.manifest)["train_images"]
        return min(there, self.train_images or there)

    @property
    def trainings(self) -> list[Training]:
        """Return the trainings to run: for each seed, one with and one without `set_epoch`.

        The trainings of `modes` follow, except those whose `buffers` are "broadcast".
        """
        orders = [Training(seed, set_epoch=on) for seed in self.seeds for on in (True, False)]
        return orders + [one for one in self.modes.values() if one.buffers != "broadcast"]

    @property
    def modes(self) -> dict[str, Training]:
        """Return the trainings whose messages are recorded, by a name such as "fsdp"."""
        seed = self.seeds[0]
        modes = {"ddp": Training(seed), "ddp, buffers local": Training(seed, buffers="local")}
        if environment.resolve_device(self.device) == "cuda":  # SyncBatchNorm needs GPUs.
            modes["ddp, SyncBatchNorm"] = Training(seed, buffers="sync_batch_norm")
        return modes | {name: Training(seed, strategy=name) for name in ("fsdp", "zero1")}

    def spec_of(self, training: Training) -> RunSpec:
        """Return the parameters of `training` on the plan's GPUs."""
        return RunSpec(
            cell=Cell("plain", training.strategy, self.gpus, self.batch_size, training.seed),
            device=environment.resolve_device(self.device),
            warmup_epochs=1,
            measured_epochs=self.epochs - 1,
            instrumented_iterations=0,
            recipe_options={"loader_workers": self.loader_workers},
            model=self.model,
            **self.model_dump(include={*Sgd.model_fields, *Limits.model_fields}),
        )
