"""What DistributedDataParallel is told where a study measures that."""

from typing import Annotated, Any

from annotated_types import Ge
from pydantic import Field

from scaling.config.key_types import AboveZero, Distinct, Positive
from scaling.core.section import Section


class Variant(Section):
    bucket_cap_mb: AboveZero | None = None
    """MiB of a bucket, a message of gradients; a plain one has 25."""
    gradient_as_bucket_view: bool = False
    """Gradients are views of the buckets, and not copied to them."""
    static_graph: bool = False
    """The same parameters take part in every step."""
    bf16_compression: bool = False
    """Gradients are sent in bf16, on a CPU by gloo too."""
    powersgd_rank: Positive | None = None
    """Gradients are sent as factors of this rank (PowerSGD), from the third step on."""
    accumulated_batches: Annotated[int, Ge(2)] | None = None
    """Gradients of so many batches are added up before they are sent, and an update is of all of
    them. Times and bytes remain those of one batch."""


class Knobs(Section):
    gpus: Distinct[Annotated[int, Ge(2)]] = Field(default_factory=list)
    """Numbers of `grid.gpus` on which plain DistributedDataParallel is compared with one that is
    told something: recipe `plain`, on batches in memory. `[]`, or no section, leaves this out."""
    batch_sizes: Distinct[Positive] = Field(default_factory=list)
    """Samples per GPU and step; a job for each of them and each number of GPUs."""
    iterations: Positive = 50
    """Steps that are timed together, or as many as the training set has."""
    repeats: Annotated[int, Ge(3)] = 5
    """Of each time, in turn with the plain one, which is timed once more."""
    variants: list[Variant] = Field(default_factory=list)
    """What it is told, each time one of the options below or several."""

    @property
    def what(self) -> dict[str, Any]:
        """All but where it is measured."""
        return self.model_dump(exclude={"gpus", "batch_sizes"})

    @property
    def named(self) -> dict[str, dict[str, Any]]:
        """What it is told, by names; at first nothing: two plain ones differ by noise alone."""
        options = [one.model_dump(exclude_defaults=True) for one in self.variants]
        names = [
            " + ".join(key if value is True else f"{key} {value:g}" for key, value in one.items())
            for one in options
        ]
        return {"plain DDP": {}, **dict(zip(names, options, strict=True))}

    @property
    def most_batches(self) -> int:
        """The most batches whose gradients are sent at once."""
        return max(one.accumulated_batches or 1 for one in [Variant(), *self.variants])
