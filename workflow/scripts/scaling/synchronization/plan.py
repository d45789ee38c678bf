"""What one job of the synchronization experiments does, as its command line. Needs no torch."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from scaling.core import environment
from scaling.core.environment import Device
from scaling.core.grid import Cell
from scaling.core.records.dataset import DATASET
from scaling.core.training_options import DataOptions, TrainingOptions
from scaling.launch.run_spec import RunSpec

Buffers = Literal["broadcast", "local", "sync_batch_norm"]
"""What becomes of batch norm's running statistics: rank 0's go to all ranks before each forward
pass (DistributedDataParallel's default), each rank keeps its own, or the statistics are computed
over the batches of all ranks (torch.nn.SyncBatchNorm)."""


@dataclass(frozen=True)
class Training:
    """One training with recipe `plain`; without `set_epoch` the sampler stays at epoch 0."""

    buffers: Buffers
    set_epoch: bool
    seed: int


@dataclass(frozen=True, kw_only=True)
class Plan(DataOptions, TrainingOptions):
    """Options of the synchronization experiments; all trainings share them but for the seed."""

    output: Path
    """The record to write."""
    tuned_options: dict[str, Any] | None = None
    """Options of recipe tuned, of which only the messages are recorded; none without them."""
    gpus: int = 2
    """GPUs, 2 or more; on a CPU, processes."""
    world_sizes: tuple[int, ...] = ()
    """Other numbers of ranks whose image orders are drawn."""
    seeds: tuple[int, ...] = (0, 1, 2)
    """Seeds of the trainings."""
    epochs: int = 5
    """Epochs of each training, 2 or more."""
    batch_size: int = 256
    """Samples per GPU and step."""
    train_images: int | None = None
    """How many images are trained on, the first ones (default: all)."""
    device: Device = "auto"
    """Where to train; `auto` means GPUs where one is visible."""
    loader_workers: int = 2
    """DataLoader processes of each process."""
    cpu_threads: int = 1
    """Threads of each process."""
    time_limit_seconds: float = 1800
    """Time limit of the whole measurement."""
    collective_timeout_seconds: float = 300
    """How long a rank waits for another."""

    @property
    def images(self) -> int:
        """The number of images that are trained on."""
        there: int = DATASET.read(self.manifest)["train_images"]
        return min(there, self.train_images or there)

    @property
    def kinds(self) -> list[Buffers]:
        """What can become of buffers on these devices, DistributedDataParallel's default first."""
        on_gpu = environment.resolve_device(self.device) == "cuda"
        kinds: list[Buffers] = ["broadcast", "local", "sync_batch_norm"]
        return kinds if on_gpu else kinds[:2]

    @property
    def trainings(self) -> list[Training]:
        """With and without `set_epoch` for each seed; buffers otherwise than by default for one."""
        orders = [
            Training("broadcast", told, seed) for seed in self.seeds for told in (True, False)
        ]
        return [*orders, *(Training(kind, True, self.seeds[0]) for kind in self.kinds[1:])]

    def spec_of(self, recipe: str, strategy: str, seed: int) -> RunSpec:
        """Return the parameters of one training, or of one step, on the plan's number of GPUs."""
        own = {"loader_workers": self.loader_workers}
        return RunSpec(
            cell=Cell(recipe, strategy, self.gpus, self.batch_size, seed),
            device=environment.resolve_device(self.device),
            warmup_epochs=1,
            measured_epochs=self.epochs - 1,
            instrumented_iterations=0,
            engine="resident" if recipe == "tuned" else "eager",
            recipe_options=self.tuned_options or {} if recipe == "tuned" else own,
            cpu_threads=self.cpu_threads,
            time_limit_seconds=self.time_limit_seconds,
            collective_timeout_seconds=self.collective_timeout_seconds,
            **self.shared,
        )
