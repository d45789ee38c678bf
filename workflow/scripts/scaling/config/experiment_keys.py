"""The keys of the experiments apart from the grid: large batches, synchronization, quantization."""

from typing import Annotated, Any, Self

from annotated_types import Ge, Gt, Le
from pydantic import BeforeValidator, ConfigDict, Field, StringConstraints, model_validator

from scaling.config.scheme import Bits, Scheme
from scaling.config.technique import Trials
from scaling.core.section import (
    AboveZero,
    Count,
    Distinct,
    Entry,
    Fraction,
    Positive,
    Section,
    Some,
)
from scaling.core.training_options import LargeBatches, NetworkTraining


class Tried(Trials, Entry):
    """A recipe that is tried with large batches, and how."""

    recipe: str
    """A name in `recipes`, of an engine with options of the update, which alone count here."""
    name: Annotated[str, StringConstraints(pattern="^[A-Za-z][A-Za-z0-9_]*$", max_length=100)]
    """Its name in tables, figures and paths. May be left out: the recipe's."""


def _named(entries: Any) -> Any:
    """The entries with a name each; a recipe's name alone is one, too."""
    if not isinstance(entries, list):
        return entries
    entries = [{"recipe": one} if isinstance(one, str) else one for one in entries]
    return [
        {"name": one["recipe"]} | one if isinstance(one, dict) and "recipe" in one else one
        for one in entries
    ]


class Convergence(LargeBatches):
    global_batches: Some[Annotated[int, Ge(2)]]
    """Images of one update, over all GPUs, to try each recipe at."""
    accuracies: Distinct[Annotated[float, Gt(0), Le(1)]] = Field(default=[0.7, 0.8, 0.85, 0.89])
    """Test accuracies for which the study reports the images needed at each global batch."""
    accuracy_margin: Fraction
    """A gap to the reference counts as closed if the interval of the difference in test accuracy
    excludes a loss of this (0.02: two points). Time to accuracy is the time to the reference's
    test accuracy minus this."""
    recipes: Annotated[
        list[Tried], BeforeValidator(_named, json_schema_input_type=list[str | Tried])
    ]
    """The techniques that are tried: names of recipes, or such a name as `recipe` with what only
    this experiment knows, as `[muon, {name: naive, recipe: tuned, scaling: linear}]`. An empty list
    leaves the experiment out."""


class TimeToAccuracy(Section):
    """Trainings by one recipe, strategy ddp, to their end; the section may be left out."""

    recipe: str = "tuned"
    """What they are trained by: a recipe, which may have an optimizer and a schedule of its own."""
    accuracy: Annotated[float, Gt(0), Le(1)] = 0.89
    """The target test accuracy of these trainings: the report has their seconds and joules, and how
    many reached it. 0.89 suits CIFAR-10 from lossy images; for the original use 0.94."""
    gpus: Distinct[Positive] = Field(default_factory=list)
    """Numbers of GPUs; `[]` leaves the trainings out."""
    global_batch: Positive = 1024
    """Images of one update, shared by the GPUs, so that all trainings are equal."""
    epochs: Annotated[int, Ge(2)] = 10
    """Epochs of each training, fixed in advance."""
    seeds: Some[Count] = Field(default=[0, 1, 2, 3, 4])
    """One training each; use 5 or more for a useful interval."""
    learning_rate: AboveZero = 0.1
    """Peak learning rate of SGD."""


class Variant(Scheme, Entry):
    name: Annotated[str, StringConstraints(pattern=r"^\w[\w.+-]*$", max_length=100)]
    """Name of the variant in tables, figures and paths."""
    seeds: Some[Count] = Field(default_factory=list)
    """The report shows the variant for these seeds only. It is measured for every seed."""


class BitWidths(Section):
    """Bit widths of variants that are plain otherwise, as `w4a8-max_abs`."""

    weights: Distinct[Bits] = Field(default_factory=list)
    """Bits of weights, with 8-bit activations: `w4a8-…`. May be left out, like the next two."""
    activations: Distinct[Bits] = Field(default_factory=list)
    """Bits of activations, with 8-bit weights: `w8a4-…`."""
    both: Distinct[Bits] = Field(default_factory=list)
    """Bits of weights and of activations: `w4a4-…`."""

    def variants(self) -> list[Variant]:
        """Return the corresponding entries of `quantization.variants`."""
        pairs = [(bits, 8) for bits in self.weights]
        pairs += [(8, bits) for bits in self.activations]
        pairs += [(bits, bits) for bits in self.both]
        found = []
        for weights, activations in pairs:
            bits = {"weight_bits": weights, "activation_bits": activations}
            own: dict[str, Any] = {key: value for key, value in bits.items() if value != 8}
            found.append(Variant(name=f"w{weights}a{activations}-max_abs", **own))
        return found


class Quantization(NetworkTraining):
    model_config = ConfigDict(frozen=False)

    seeds: Distinct[Count]
    """One tutorial CNN is trained and quantized for each. With `[]` (and no `resnet18`) the study
    has no Part B."""
    calibration_images: Count
    """Training images that set the activation scales; 0 means all."""
    variants: list[Variant]
    """Quantized copies of each seed's network, in one job: a new or changed one repeats all of a
    network. Options default to plain int8. The report's stages are `weights`,
    `weights+activations` and `weights+activations+bias`."""
    bit_widths: BitWidths = Field(default_factory=BitWidths)
    histograms: str
    """The variant whose weights and activations are drawn: one with int8 logits and per-tensor
    scales."""
    resnet18: bool
    """`true` also trains a ResNet-18 of `model.width` for each seed (recipe `tuned` if the grid has
    it, else its first; one GPU, the epochs of `training`, the smallest of `grid.batch_sizes`) and
    quantizes it in the same stages. Without a GPU that uses all cores, on Slurm one:
    `--set-threads quantize_evaluate_resnet=16`."""

    @model_validator(mode="after")
    def _bits_are_variants(self) -> Self:
        self.variants = [*self.variants, *self.bit_widths.variants()]
        # Each list empty, as a file that is laid over another replaces lists alone.
        self.bit_widths = BitWidths()
        return self
