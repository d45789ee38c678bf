"""Engine `eager`: a plain training loop, with options of DistributedDataParallel (DDP)."""

from typing import Annotated, Any

from annotated_types import Ge, Gt
from pydantic import Field

from scaling.core.section import Section
from scaling.registry.engine import Engine
from scaling.registry.registry import Reference


class Options(Section):
    """Options of engine `eager`."""

    loader_workers: int = Field(ge=0)
    """DataLoader processes of each training process."""
    bucket_cap_mb: Annotated[float, Gt(0)] | None = None
    """DDP option: maximum MiB of a gradient bucket, which is sent as one message. Null: 25."""
    gradient_as_bucket_view: bool = False
    """DDP option: gradients are views of the buckets, which saves a copy."""
    static_graph: bool = False
    """DDP option: promises that every step uses the same parameters."""
    bf16_compression: bool = False
    """With strategy ddp, gradients are sent in bf16, also by gloo on a CPU."""
    powersgd_rank: Annotated[int, Ge(1)] | None = None
    """With strategy ddp, gradients are sent as low-rank factors of this matrix rank (PowerSGD) from
    the third step on. Null: gradients are sent whole."""

    def of_ddp(self) -> dict[str, Any]:
        """Return the arguments for `strategies.ddp` that differ from their defaults."""
        return self.model_dump(exclude={"loader_workers"}, exclude_defaults=True)


ENTRY = Engine(
    name="eager",
    trainer=Reference("scaling.training.eager:Eager"),
    options=Options,
    only_with=dict.fromkeys(sorted(set(Options.model_fields) - {"loader_workers"}), ("ddp",)),
)
