"""The keys of a configuration: type, allowed values, and the text for config/README.md."""

from typing import Annotated, Any, Literal, get_args

from annotated_types import Ge, Gt, Le
from pydantic import BeforeValidator, ConfigDict, Field, Strict, StringConstraints

from scaling.config.scheme import Scheme
from scaling.core import section as types
from scaling.core import training_options as options
from scaling.registry.strategy import Choice
from scaling.registry.update_rule import SweepOptions

NAME = "^[A-Za-z0-9][A-Za-z0-9_.-]*$"
Word = Annotated[str, StringConstraints(pattern="^[A-Za-z][A-Za-z0-9_]*$", max_length=100)]
Part = Literal["scaling", "accuracy", "time_to_accuracy", "proofs", "int8"]
PARTS: tuple[Part, ...] = get_args(Part)


class Grid(types.Section):
    recipes: types.Some[str]
    """Recipes to measure: names of sections of `recipes`."""
    strategies: types.Some[Choice] = Field(default=["ddp"])
    """`dp` is torch.nn.DataParallel (GPUs only). `ddp` has one process per GPU and an all-reduce of
    gradients. In `fsdp` (fully_shard) each process stores a part of the model, in `zero1` a part of
    the optimizer's state. A run on one GPU has no strategy and is measured once."""
    gpus: types.Some[types.Few]
    """Numbers of GPUs. Speedups need 1 among them."""
    batch_sizes: types.Some[types.Positive]
    """Samples **per GPU** and step. A run that exceeds the memory is recorded as `oom`, a batch
    that exceeds the dataset as `infeasible`."""
    seeds: types.Some[types.Count]
    """Seeds. Every configuration has one run per seed and repeat."""
    repeats: types.Few = 1
    """Runs of every configuration and seed; a 95 % interval of times needs 2 repeats or seeds.
    A repeat may run on another machine: each has a machine check, peak rates and message sweeps."""
    strong_scaling: bool = True
    """`true` adds a configuration on the most GPUs, to compare it with 1 GPU at equal global batch.
    Example: 2 GPUs with 64 samples each, against 1 GPU with 128. The global batch is the element of
    `batch_sizes` nearest to 128 that they divide. If the grid already has it, nothing is added."""


def _off(value: Any) -> Any:
    """Return "off" instead of false, because YAML reads the word `off` as false."""
    return "off" if value is False else value


class Machine(options.Limits):
    share: bool = False
    """`true` runs timed jobs side by side on one machine. Accuracies stay valid, times do not. A
    change repeats these jobs."""
    gpus_per_node: types.Few | None = None
    """GPUs per node of a cluster; larger runs use several whole nodes. `null`: one node per run."""
    check: Annotated[Literal["refuse", "warn", "off"], BeforeValidator(_off)] = "refuse"
    """What to do on an unfit machine: `refuse`, `warn` in the report, or skip the check (`off`). A
    GPU is unfit if other processes compute on it, if less than 90 % of its memory is free, if it
    has memory errors, or if it computes at less than 90 % of the median GPU's rate."""


class Cost(types.Section):
    per_gpu_hour: types.NotNegative | None = None
    """Price of one GPU for an hour, in any currency; null: unknown."""


class Slurm(types.Section):
    extra: Annotated[str, StringConstraints(pattern="^[-A-Za-z0-9_=,.:/@%+ ]*$")] = ""
    """Additional options of sbatch for every job, such as `--constraint=h100 --qos=short`."""
    gres: bool = False
    """`true` requests GPUs by `--gres=gpu:N`, not by `--gpus`."""


class TechniqueEntry(SweepOptions, types.Entry):
    """A recipe to train with large batches, and its learning rate sweep."""

    recipe: str
    """Name of a recipe. Only its `precision` and options of the weight update are used."""
    name: Word
    """Name in tables, figures and paths; the default is the name of the recipe."""


def _named(entries: Any) -> Any:
    """Return `entries`, each with a `name`. A string x becomes {recipe: x, name: x}."""
    if not isinstance(entries, list):
        return entries
    given = [{"recipe": one} if isinstance(one, str) else one for one in entries]
    return [{"name": one.get("recipe")} | one if isinstance(one, dict) else one for one in given]


class Convergence(options.LargeBatches):
    global_batches: types.Some[Annotated[int, Ge(2)]]
    """Numbers of images per update, over all GPUs, at which each technique is trained."""
    accuracy_margin: types.Fraction
    """Tolerated loss of test accuracy, compared with the reference (0.02: two points). A technique
    closes the gap if the whole interval of its difference lies above minus this value."""
    recipes: Annotated[
        types.Some[TechniqueEntry],
        BeforeValidator(_named, json_schema_input_type=types.Some[str | TechniqueEntry]),
    ]
    """The techniques: names of recipes, or a `recipe` with more options, such as `[muon, {name:
    naive, recipe: tuned, scaling: linear}]`."""


class TimeToAccuracy(types.Section):
    """Complete trainings by one recipe with strategy ddp, whose times the report compares."""

    recipe: str = "tuned"
    """Recipe of all time-to-accuracy trainings."""
    accuracy: Annotated[float, Gt(0), Le(1)] = 0.89
    """Target test accuracy. Use 0.89 for CIFAR-10 from lossy images, 0.94 for the original."""
    gpus: types.Some[types.Positive] = Field(default=[1])
    """Numbers of GPUs; each has one training per seed."""
    global_batch: types.Positive = 1024
    """Images per update, over all GPUs: the same for every number of GPUs."""
    epochs: Annotated[int, Ge(2)] = 10
    """Epochs of each training. A training does not stop at the target accuracy."""
    seeds: types.Some[types.Count] = Field(default=[0, 1, 2, 3, 4])
    """Seeds of the trainings; 5 or more give a useful interval."""
    learning_rate: types.AboveZero = 0.1
    """Peak learning rate of SGD."""


class Variant(Scheme, types.Entry):
    name: Annotated[str, StringConstraints(pattern=r"^\w[\w.+-]*$", max_length=100)]
    """Name of the variant in tables, figures and paths."""
    seeds: types.Some[types.Count] = Field(default_factory=list)
    """Seeds for which the report shows this variant; if left out, all. All seeds are measured."""


class Quantization(options.NetworkTraining):
    model_config = ConfigDict(frozen=False)

    seeds: types.Some[types.Count]
    """Seeds; one tutorial CNN is trained and quantized for each."""
    calibration_images: types.Count
    """Number of training images that determine the activation scales; 0: all."""
    variants: types.Distinct[Variant]
    """Quantized copies of each seed's network. One job per seed measures all variants: a new or
    changed variant repeats these jobs. Options default to plain int8. The report shows the stages
    `weights`, `weights+activations` and `weights+activations+bias`, and histograms of values."""


class Configuration(types.Section):
    study: Annotated[str, StringConstraints(pattern=NAME, max_length=100)]
    """Name of the study. Tables of runs are written to `results/tables/{study}`, figures to
    `results/figures/{study}`."""
    device: Literal["auto", "cpu", "cuda"]
    """`cpu`, `cuda`, or `auto`: cuda if a GPU is visible. On `cpu` a "GPU" is one process."""
    partial: Annotated[bool, Strict(False)]
    """`true` makes tables and report from the existing runs only."""
    parts: types.Some[Part] = Field(default_factory=lambda: list(PARTS))
    """What to measure: `scaling` (grid, interconnect, peaks), `accuracy` (techniques for large
    batches), `time_to_accuracy` (complete trainings), `proofs` (rank synchronization), `int8`
    (quantization, Part B of the lab)."""
    plugins: types.Distinct[str] = Field(default_factory=list)
    """Your Python files, each with an `ENTRY`: strategy, engine or dataset (docs/extending.md)."""
    dataset: options.Dataset
    model: options.Model = Field(default_factory=options.Model)
    grid: Grid
    training: options.Training = Field(default_factory=options.Training)
    recipes: dict[Word, dict[str, Any]]
    """Recipes by name. A recipe has an `engine` with its options, or a `base` (another recipe)
    and the options that differ from it."""
    machine: Machine = Field(default_factory=Machine)
    interconnect: options.Interconnect
    peaks: options.Peaks
    cost: Cost = Field(default_factory=Cost)
    slurm: Slurm = Field(default_factory=Slurm)
    convergence: Convergence
    time_to_accuracy: TimeToAccuracy = Field(default_factory=TimeToAccuracy)
    synchronization: options.Synchronization = Field(default_factory=options.Synchronization)
    quantization: Quantization
