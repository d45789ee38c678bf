"""The keys of a configuration: their types, what they allow, and what config/README.md says."""

from typing import Annotated, Any, Literal, get_args

from annotated_types import Ge, Le
from pydantic import Field, StringConstraints

from scaling.config.experiment_keys import Convergence, Quantization, TimeToAccuracy
from scaling.config.recipes import one_of
from scaling.core.section import Count, Distinct, Few, NotNegative, Positive, Section, Some
from scaling.core.training_options import (
    Interconnect,
    Limits,
    Model,
    Peaks,
    Synchronization,
    Training,
)
from scaling.registry.strategy import STRATEGIES

NAME = "^[A-Za-z0-9][A-Za-z0-9_.-]*$"
Part = Literal["scaling", "accuracy", "proofs", "int8"]
PARTS: tuple[Part, ...] = get_args(Part)
EMPTY: dict[Part, dict[str, dict[str, Any]]] = {
    "scaling": {"grid": {"seeds": []}},
    "accuracy": {"convergence": {"recipes": []}, "time_to_accuracy": {"gpus": []}},
    "proofs": {"synchronization": {"seeds": []}},
    "int8": {"quantization": {"seeds": [], "resnet18": False}},
}
"""What switches each part of a study off, by section."""


class Dataset(Section):
    source: str
    """`cifar10` (downloaded), `images` (yours), `digits` (1,797 real handwritten digits, nothing to
    download), `synthetic` (generated, for timing)."""
    path: str | None = None
    """For `cifar10`: a folder with `cifar-10-batches-py`, or `cifar-10-python.tar.gz`; null
    downloads. For `images`: a folder or tar of `train/<class>/*` and `test/<class>/*`, read again
    after `rm -r resources/dataset`."""
    mirror_url: str | None = None
    """For `cifar10`: another address of `cifar-10-python.tar.gz`; the checksum is the same."""
    download_attempts: Positive = 3
    """For `cifar10`: how often the download is tried."""
    train_images: Annotated[Positive, Ge(10)] = 50_000
    """For `synthetic`: number of training images."""
    test_images: Annotated[Positive, Ge(10)] = 10_000
    """For `synthetic`: number of test images."""
    seed: Count = 0
    """For `synthetic`: seed of the images."""
    image_size: Annotated[int, Ge(8), Le(1024)] = 32
    """Pixels of an image's sides. Others are resized, bilinearly. May be left out."""


class Grid(Section):
    recipes: Some[str]
    """How to train: names of sections of `recipes`."""
    strategies: Some[Annotated[str, one_of(STRATEGIES)]] = Field(default_factory=lambda: ["ddp"])
    """`dp` is torch.nn.DataParallel (GPUs only); `ddp` one process a GPU and an all-reduce (recipe
    `plain` by DistributedDataParallel); `fsdp` one a GPU that keeps its part of the model
    (fully_shard, each block for itself); `zero1` one that keeps its part of the optimizer's state
    (`plain` by ZeroRedundancyOptimizer). One GPU is one plain process for all, measured once."""
    gpus: Some[Few]
    """Numbers of GPUs. 1 is needed for every speedup."""
    batch_sizes: Some[Positive]
    """Samples **per GPU** and step. What does not fit into memory is recorded as `oom`, what is
    larger than the dataset as `infeasible`."""
    seeds: Distinct[Count]
    """One run of every cell per seed: other weights and orders, the same work. `[]` leaves the grid
    and the limits of the machine out."""
    repeats: Few = 1
    """Runs of every cell and seed, each a process of its own, on Slurm perhaps on another node:
    only they tell noise from a difference. May be left out."""


class Machine(Limits):
    share: bool = False
    """`true` lets timed jobs run side by side on one machine. Their times then say little; for
    convergence runs."""
    gpus_per_node: Few | None = None
    """On a cluster: GPUs of one node. A run on more GPUs is spread over several nodes, all of whose
    GPUs it uses, so their number must divide. `null`: every run is on one node."""
    check: Literal["refuse", "warn", "off"] = "refuse"
    """What to do where the machine is not fit to measure: `refuse` it before anything is measured,
    `warn` in the report, or do not look (`off`). Unfit is a GPU on which others compute, with less
    than 90 % of its memory free, with memory errors, or at less than 90 % of the median GPU's rate.
    What may disturb (heat, links, a busy CPU, Xids) is only warned of. May be left out."""


class Cost(Section):
    per_gpu_hour: NotNegative | None = None
    """What an hour of one GPU costs, in any currency: costs.csv has what an epoch does. null: not
    known. The section may be left out."""


class Slurm(Section):
    extra: Annotated[str, StringConstraints(pattern="^[-A-Za-z0-9_=,.:/@%+ ]*$")] = ""
    """More options of sbatch for every job: `--constraint=h100 --qos=short`. May be left out."""
    gres: bool = False
    """GPUs are asked for by `--gres=gpu:N`, not by `--gpus`. May be left out."""


class Configuration(Section):
    study: Annotated[str, StringConstraints(pattern=NAME, max_length=100)]
    """Name of the study. Its tables lie in `results/tables/{study}`, its figures in
    `results/figures/{study}`."""
    device: Literal["auto", "cpu", "cuda"]
    """`cpu`, `cuda`, or `auto`: cuda where a GPU is visible. On `cpu` a "GPU" is one process with
    `machine.cpu_threads` threads."""
    partial: bool
    """`true` makes the tables and the report of the runs that exist; the report lists the missing
    ones at the top."""
    parts: Some[Part] = Field(default_factory=lambda: list(PARTS))
    """What is measured: `scaling` (the grid, the interconnect, the peaks), `accuracy` (recipes
    with large batches, trainings to an accuracy), `proofs` (what ranks share, on the most GPUs of
    `grid.gpus`), `int8` (Part B). May be left out: all of them."""
    plugins: Distinct[str] = Field(default_factory=list)
    """Python files of yours, each with an `ENTRY` that adds a strategy, a recipe, a model or a
    dataset: see docs/extending.md. May be left out."""
    dataset: Dataset
    model: Model = Field(default_factory=Model)
    grid: Grid
    training: Training = Field(default_factory=Training)
    recipes: dict[str, dict[str, Any]]
    """By their names: each an `engine` with its options, or a `base`, another recipe, with what is
    changed of it. A cell is compared with the one on one GPU that has the same recipe."""
    machine: Machine = Field(default_factory=Machine)
    interconnect: Interconnect
    peaks: Peaks
    cost: Cost = Field(default_factory=Cost)
    slurm: Slurm = Field(default_factory=Slurm)
    convergence: Convergence
    time_to_accuracy: TimeToAccuracy = Field(default_factory=TimeToAccuracy)
    synchronization: Synchronization = Field(default_factory=Synchronization)
    quantization: Quantization
