"""The keys of a configuration: their types, what they allow, and what config/README.md says."""

from typing import Annotated, Any, Literal, get_args

from annotated_types import Ge, Le, MinLen, MultipleOf
from pydantic import BeforeValidator, Field, JsonValue, StringConstraints

from scaling.config.experiment_keys import (
    Convergence,
    Quantization,
    Synchronization,
    TimeToAccuracy,
)
from scaling.config.recipes import one_of
from scaling.core.section import (
    AboveZero,
    Count,
    Distinct,
    Entry,
    Few,
    Fraction,
    NotNegative,
    Positive,
    Section,
    Some,
)
from scaling.registry.strategy import STRATEGIES

NAME = "^[A-Za-z0-9][A-Za-z0-9_.-]*$"
Part = Literal["scaling", "accuracy", "proofs", "int8"]
PARTS: tuple[Part, ...] = get_args(Part)
EMPTY: dict[Part, dict[str, dict[str, Any]]] = {
    "scaling": {"grid": {"seeds": []}},
    "accuracy": {"convergence": {"remedies": []}, "time_to_accuracy": {"gpus": []}},
    "proofs": {"synchronization": {"seeds": []}},
    "int8": {"quantization": {"seeds": [], "peers": [], "resnet18": False}},
}
"""What switches each part of a study off, by section."""


class Dataset(Section):
    source: str
    """`cifar10` (downloaded), `images` (yours), `digits` (1,797 real handwritten digits, nothing to
    download), `synthetic` (generated, for timing)."""
    path: str | None
    """For `cifar10`: an existing folder with `cifar-10-batches-py`, or `cifar-10-python.tar.gz`;
    null downloads. For `images`: a folder or tar of `train/<class>/*` and `test/<class>/*`. Images
    changed in place are read again after `rm -r resources/dataset`."""
    mirror_url: str | None
    """For `cifar10`: another address of `cifar-10-python.tar.gz`; the checksum is the same."""
    download_attempts: Positive
    """For `cifar10`: how often the download is tried."""
    train_images: Annotated[Positive, Ge(10)]
    """For `synthetic`: number of training images."""
    test_images: Annotated[Positive, Ge(10)]
    """For `synthetic`: number of test images."""
    seed: Count
    """For `synthetic`: seed of the images."""
    image_size: Annotated[int, Ge(8), Le(1024)] = 32
    """Pixels of an image's sides. Others are resized, bilinearly. May be left out."""


class Model(Section):
    name: Annotated[str, MinLen(1)] = "resnet18-cifar"
    """`resnet18-cifar`, a classification model of torchvision by its name (`resnet50`, `vit_b_16`),
    or a function of yours that takes the number of classes and returns the network:
    `path/to/file.py:function` or `module:function`. May be left out."""
    width: Few = 64
    """For `resnet18-cifar`: channels of its first stage. 64 is the model of the literature with
    11,173,962 parameters."""
    options: dict[str, JsonValue] = Field(default_factory=dict)
    """For the others: arguments of the function, as `{width_per_group: 128}`."""


class Repeats(Entry):
    """Of some cells; of all that are not named by a key that is left out."""

    repeats: Few
    recipes: Some[str] | None = None
    strategies: Some[str] | None = None
    gpus: Some[Few] | None = None
    batch_sizes: Some[Positive] | None = None


def _for_all(repeats: Any) -> Any:
    """One number as the repeats of all cells."""
    return [{"repeats": repeats}] if isinstance(repeats, int) else repeats


class Grid(Section):
    recipes: Some[str]
    """How to train: names of sections of `recipes`."""
    strategies: Some[Annotated[str, one_of(STRATEGIES)]] = Field(default_factory=lambda: ["ddp"])
    """`dp` is torch.nn.DataParallel (GPUs only), `ddp` is one process a GPU and an all-reduce: by
    DistributedDataParallel in recipe `plain`, by its own in `tuned`; `fsdp` one a GPU that keeps
    its part of the model (fully_shard, each block for itself), `zero1` one that keeps its part of
    the optimizer's state. One GPU is one plain process for all, measured once."""
    gpus: Some[Few]
    """Numbers of GPUs. 1 is needed for every speedup."""
    batch_sizes: Some[Positive]
    """Samples **per GPU** and step. What does not fit into memory is recorded as `oom`, what is
    larger than the dataset as `infeasible`."""
    seeds: Distinct[Count]
    """One run of every cell per seed: other weights and orders, the same work. `[]` leaves the grid
    and the limits of the machine out."""
    repeats: Annotated[
        list[Repeats], BeforeValidator(_for_all, json_schema_input_type=int | list[Repeats])
    ] = Field(default_factory=list)
    """Runs of every cell and seed, each a process of its own, on Slurm perhaps on another node:
    only they tell noise from a difference. For some cells, as `[{recipes: [tuned], repeats: 2},
    {recipes: [plain], batch_sizes: [128, 512], repeats: 2}]`. May be left out."""


class Training(Section):
    micro_batches: Positive = 1
    """Gradient accumulation: each GPU trains its batch in so many parts, one after another, before
    the one update. A batch that does not fit into memory then does. May be left out."""
    warmup_epochs: Positive
    """Epochs at the start that are recorded and never averaged."""
    measured_epochs: Annotated[int, Ge(3)]
    """Epochs after them; the figure of a cell is their median, over all seeds. At least 3. The
    accuracy of all cells is that after so many epochs and the warm-up's."""
    warmup_seconds: NotNegative = 0.0
    """Warm-up goes on until so many seconds have passed. May be left out, like the next two."""
    measured_seconds: NotNegative = 0.0
    """Measuring goes on until so many seconds have passed, and then until the cell has settled: the
    median of the last third of its epochs is within 2 % of the first third's, or within the noise
    from epoch to epoch."""
    max_measured_seconds: NotNegative = 0.0
    """What has not settled after so many seconds is left so; tables and report say of which cells.
    0: none is waited for."""
    instrumented_iterations: Count
    """Extra epochs of at most so many iterations follow the measured ones. On several GPUs they
    measure communication: without synchronisation, traced, and by DDP's own log. The traced one
    also tells how long nothing runs on a GPU. 0 means none."""
    learning_rate: AboveZero
    """Of SGD."""
    momentum: Fraction
    """Of SGD."""
    weight_decay: NotNegative
    """Of SGD. Write `5.0e-4`: YAML reads `5e-4` as text."""
    crop_padding: Annotated[int, Ge(0), Le(16)]
    """Pixels of padding around an image before a random crop of its size."""
    horizontal_flip: bool
    """Mirrors half of the images. Right for photographs, wrong for digits."""


class Machine(Section):
    share: bool
    """`true` lets timed jobs run side by side on one machine. Their times then say little; for
    convergence runs."""
    gpus_per_node: Few | None
    """On a cluster: GPUs of one node. A run on more GPUs is spread over several nodes, all of whose
    GPUs it uses, so their number must divide. `null`: every run is on one node."""
    cpu_threads: Few
    """Threads of each training process."""
    time_limit_seconds: AboveZero
    """A run that takes longer is stopped and recorded as `timeout`. One that waits longer for GPUs
    that other jobs hold fails and names them."""
    collective_timeout_seconds: AboveZero
    """A rank that waits longer than this for the others, inside a CUDA graph too, has hung: the run
    fails and names the ranks."""

    check: Literal["refuse", "warn", "off"] = "refuse"
    """What to do where the machine is not fit to measure: `refuse` it before anything is measured,
    `warn` in the report, or do not look (`off`). Unfit is a GPU on which others compute, with less
    than 90 % of its memory free, with memory errors, or at less than 90 % of the median GPU's rate
    while all multiply matrices. Only warned of: less than 97 %; clocks lowered by heat; fewer
    NVLinks than another; a slower PCIe link than its own; cores far from it; others that keep over
    25 % of the CPU busy, or a load above its cores; a governor that saves power; an Xid in the
    kernel's log. May be left out."""


class Interconnect(Section):
    message_bytes: Some[Annotated[int, Ge(4), MultipleOf(4)]]
    """Sizes of the all-reduce sweep. The gradients' size, DDP's buckets and recipe `tuned`'s are
    always added."""
    warmup: Positive
    """Untimed repeats of each size."""
    repeats: Annotated[int, Ge(3)]
    """Timed repeats of each size; the figure is their median."""
    iterations: Annotated[int, Ge(1), Le(20)]
    """All-reduces timed together in one repeat, as nccl-tests does."""


class Peaks(Section):
    matrix_sizes: Some[Positive]
    """Sizes of the square matrix products, in float32, TF32 and bf16 (on a CPU, float32 and bf16).
    The largest rate of a precision is its peak."""
    copy_bytes: Positive
    """Size of the copies within a device and between GPUs; larger than any cache."""
    repeats: Annotated[int, Ge(3)]
    """Timed repeats of each figure, after a warm-up; the figure is their median."""
    sustained_seconds: NotNegative = 0.0
    """The rates above are a sprint's, of a GPU that has rested; it lowers its clocks when it works
    on. The best size is read again after so many seconds of work, and up to three times as many
    until the rate has settled: the sustained peak. 0: not. May be left out."""


class Cost(Section):
    per_gpu_hour: NotNegative | None = None
    """What an hour of one GPU costs, in any currency: costs.csv has what an epoch does. null: not
    known. The section may be left out."""


class Slurm(Section):
    extra: Annotated[str, StringConstraints(pattern="^[-A-Za-z0-9_=,.:/@%+ ]*$")] = ""
    """Options of sbatch for every job, besides those that it asks for itself: `--constraint=h100
    --qos=short --reservation=course --mail-type=FAIL`. May be left out."""
    gres: bool = False
    """GPUs are asked for by `--gres=gpu:N`, for clusters that do not take `--gpus`. May be left
    out."""


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
    """What is measured: `scaling` (the grid, the interconnect, the peaks), `accuracy` (remedies for
    large batches, trainings to an accuracy), `proofs` (what ranks share), `int8` (Part B). No key
    of another part matters; the proofs are on the most GPUs of `grid.gpus`. May be left out: all of
    them."""
    plugins: Distinct[str] = Field(default_factory=list)
    """Python files of yours, each with an `ENTRY` that adds a strategy, a recipe, a model or a
    dataset: see docs/extending.md. May be left out."""
    dataset: Dataset
    model: Model = Field(default_factory=Model)
    grid: Grid
    training: Training
    recipes: dict[str, dict[str, Any]]
    """By their names: each an `engine` with its options, or a `base`, another recipe, with what is
    changed of it. A cell is compared with the one on one GPU that has the same recipe."""
    machine: Machine
    interconnect: Interconnect
    peaks: Peaks
    cost: Cost = Field(default_factory=Cost)
    slurm: Slurm = Field(default_factory=Slurm)
    convergence: Convergence
    time_to_accuracy: TimeToAccuracy = Field(default_factory=TimeToAccuracy)
    synchronization: Synchronization
    quantization: Quantization
