"""The keys of a configuration: their types, what they allow, and what config/README.md says."""

from typing import Annotated, Any, Literal, get_args

from annotated_types import Ge, Gt, Le, Len
from pydantic import BeforeValidator, ConfigDict, Field, StringConstraints

from scaling.config.recipes import one_of
from scaling.config.scheme import Scheme
from scaling.core import section as types
from scaling.core import training_options as options
from scaling.registry.strategy import STRATEGIES
from scaling.registry.update_rule import SweepOptions

NAME = "^[A-Za-z0-9][A-Za-z0-9_.-]*$"
Word = Annotated[str, StringConstraints(pattern="^[A-Za-z][A-Za-z0-9_]*$", max_length=100)]
Part = Literal["scaling", "accuracy", "time_to_accuracy", "proofs", "int8"]
PARTS: tuple[Part, ...] = get_args(Part)


class Grid(types.Section):
    recipes: types.Some[str]
    """How to train: names of sections of `recipes`."""
    strategies: types.Some[Annotated[str, one_of(STRATEGIES)]] = Field(
        default_factory=lambda: ["ddp"]
    )
    """`dp` is torch.nn.DataParallel (GPUs only); `ddp` one process a GPU and an all-reduce; `fsdp`
    one that keeps its part of the model (fully_shard), `zero1` its part of the optimizer's state.
    One GPU has no strategy: it is one plain process, measured once for all."""
    gpus: types.Some[types.Few]
    """Numbers of GPUs. 1 is needed for every speedup."""
    batch_sizes: types.Some[types.Positive]
    """Samples **per GPU** and step. What does not fit into memory is recorded as `oom`, what is
    larger than the dataset as `infeasible`."""
    seeds: types.Some[types.Count]
    """Seeds, each of one run of every configuration."""
    repeats: types.Few = 1
    """Runs of every configuration and seed; with one there is no interval. Each repeat has its own
    machine check, peaks and sweeps, as it may run on another machine."""
    strong_scaling: bool = True
    """`true` adds a configuration on the most GPUs with the global batch of one on one GPU, unless
    the grid has such a pair: of possible batches the nearest to 128, as 2 × 64 for 1 × 128."""


def _off(value: Any) -> Any:
    """Return a value, but `off` where YAML reads that word as false."""
    return "off" if value is False else value


class Machine(options.Limits):
    share: bool = False
    """`true` lets timed jobs run side by side on one machine: for accuracies, not for times."""
    gpus_per_node: types.Few | None = None
    """On a cluster: GPUs of one node. Runs on more GPUs have several whole nodes. `null`: every run
    is on one node."""
    check: Annotated[Literal["refuse", "warn", "off"], BeforeValidator(_off)] = "refuse"
    """What to do on an unfit machine: `refuse`, `warn` in the report, or skip the check (`off`). A
    GPU is unfit if other processes compute on it, if less than 90 % of its memory is free, if it
    has memory errors, or if its rate is below 90 % of the median GPU's."""


class Cost(types.Section):
    per_gpu_hour: types.NotNegative | None = None
    """What an hour of one GPU costs, in any currency; null: not known."""


class Slurm(types.Section):
    extra: Annotated[str, StringConstraints(pattern="^[-A-Za-z0-9_=,.:/@%+ ]*$")] = ""
    """More options of sbatch for every job: `--constraint=h100 --qos=short`."""
    gres: bool = False
    """`true` requests GPUs by `--gres=gpu:N`, not by `--gpus`."""


class TechniqueEntry(SweepOptions, types.Entry):
    """A recipe that is tried with large batches, and how."""

    recipe: str
    """A name in `recipes`, of an engine with options of the update, which alone count here."""
    name: Word
    """Its name in tables, figures and paths; the default is the recipe's."""


def _named(entries: Any) -> Any:
    """Return `entries` with a name each; a recipe's name alone becomes an entry."""
    if not isinstance(entries, list):
        return entries
    given = [{"recipe": one} if isinstance(one, str) else one for one in entries]
    return [{"name": one.get("recipe")} | one if isinstance(one, dict) else one for one in given]


class Convergence(options.LargeBatches):
    global_batches: types.Some[Annotated[int, Ge(2)]]
    """Images of one update, over all GPUs, to try each recipe at."""
    accuracy_margin: types.Fraction
    """A gap to the reference counts as closed if the interval of the difference in test accuracy
    excludes a loss of this (0.02: two points)."""
    recipes: Annotated[
        list[TechniqueEntry],
        BeforeValidator(_named, json_schema_input_type=list[str | TechniqueEntry]),
        Len(1),
    ]
    """The techniques that are tried: names of recipes, or one as `recipe` with more options, as
    `[muon, {name: naive, recipe: tuned, scaling: linear}]`."""


class TimeToAccuracy(types.Section):
    """Trainings by one recipe, strategy ddp, to their end."""

    recipe: str = "tuned"
    """The recipe that they are trained by."""
    accuracy: Annotated[float, Gt(0), Le(1)] = 0.89
    """The target test accuracy. 0.89 suits CIFAR-10 from lossy images, 0.94 the original."""
    gpus: types.Some[types.Positive] = Field(default=[1])
    """Numbers of GPUs."""
    global_batch: types.Positive = 1024
    """Images of one update, shared by the GPUs, so that all trainings are equal."""
    epochs: Annotated[int, Ge(2)] = 10
    """Epochs of each training, fixed in advance."""
    seeds: types.Some[types.Count] = Field(default=[0, 1, 2, 3, 4])
    """One training each; use 5 or more for a useful interval."""
    learning_rate: types.AboveZero = 0.1
    """Peak learning rate of SGD."""


class Variant(Scheme, types.Entry):
    name: Annotated[str, StringConstraints(pattern=r"^\w[\w.+-]*$", max_length=100)]
    """Name of the variant in tables, figures and paths."""
    seeds: types.Some[types.Count] = Field(default_factory=list)
    """The report shows the variant for these seeds only. It is measured for every seed."""


class Quantization(options.NetworkTraining):
    model_config = ConfigDict(frozen=False)

    seeds: types.Some[types.Count]
    """One tutorial CNN is trained and quantized for each."""
    calibration_images: types.Count
    """Training images that set the activation scales; 0 means all."""
    variants: list[Variant]
    """Quantized copies of each seed's network, in one job: a new or changed one repeats all of a
    network. Options default to plain int8. The report's stages are `weights`,
    `weights+activations` and `weights+activations+bias`, whose values are drawn."""


class Configuration(types.Section):
    study: Annotated[str, StringConstraints(pattern=NAME, max_length=100)]
    """Name of the study. Its tables lie in `results/tables/{study}`, its figures in
    `results/figures/{study}`."""
    device: Literal["auto", "cpu", "cuda"]
    """`cpu`, `cuda`, or `auto`: cuda where a GPU is visible. On `cpu` a "GPU" is one process."""
    partial: bool
    """`true` makes the tables and the report of the runs that exist."""
    parts: types.Some[Part] = Field(default_factory=lambda: list(PARTS))
    """What is measured: `scaling` (the grid, the interconnect, the peaks), `accuracy` (recipes
    with large batches), `time_to_accuracy` (trainings to an accuracy), `proofs` (rank
    synchronization), `int8` (Part B)."""
    plugins: types.Distinct[str] = Field(default_factory=list)
    """Python files of yours, each with an `ENTRY` that adds a strategy, an engine or a dataset: see
    docs/extending.md."""
    dataset: options.Dataset
    model: options.Model = Field(default_factory=options.Model)
    grid: Grid
    training: options.Training = Field(default_factory=options.Training)
    recipes: dict[Word, dict[str, Any]]
    """By their names: each an `engine` with its options, or a `base`, another recipe, with what is
    changed of it."""
    machine: Machine = Field(default_factory=Machine)
    interconnect: options.Interconnect
    peaks: options.Peaks
    cost: Cost = Field(default_factory=Cost)
    slurm: Slurm = Field(default_factory=Slurm)
    convergence: Convergence
    time_to_accuracy: TimeToAccuracy = Field(default_factory=TimeToAccuracy)
    synchronization: options.Synchronization = Field(default_factory=options.Synchronization)
    quantization: Quantization
