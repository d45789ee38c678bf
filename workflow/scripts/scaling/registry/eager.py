"""Engine `eager`: a plain training loop with the options of DistributedDataParallel."""

from typing import Annotated, Any

from annotated_types import Ge, Gt
from pydantic import Field

from scaling.core.section import Section
from scaling.registry.engine import Engine
from scaling.registry.registry import Reference


class Options(Section):
    """The options of engine `eager`."""

    loader_workers: int = Field(ge=0)
    """DataLoader processes of each training process."""
    bucket_cap_mb: Annotated[float, Gt(0)] | None = None
    """DistributedDataParallel's: MiB of a bucket, a message of gradients. null: 25."""
    gradient_as_bucket_view: bool = False
    """DistributedDataParallel's: gradients are views of the buckets, and not copied to them."""
    static_graph: bool = False
    """DistributedDataParallel's: the same parameters take part in every step."""
    bf16_compression: bool = False
    """Strategy ddp sends gradients in bf16, on a CPU by gloo too."""
    powersgd_rank: Annotated[int, Ge(1)] | None = None
    """Strategy ddp sends gradients as factors of this rank (PowerSGD), from the third step on. null
    sends them whole."""

    def of_ddp(self) -> dict[str, Any]:
        """Return the options of DistributedDataParallel that differ from its defaults."""
        return self.model_dump(exclude={"loader_workers"}, exclude_defaults=True)


ENTRY = Engine(
    name="eager",
    trainer=Reference("scaling.training.eager:Eager"),
    options=Options,
    only_with=dict.fromkeys(sorted(set(Options.model_fields) - {"loader_workers"}), ("ddp",)),
)
