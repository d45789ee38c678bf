"""Engine `resident`: keeps images on the device, compiles steps and replays CUDA graphs."""

from typing import Self

from pydantic import model_validator

from scaling.core.section import Precision
from scaling.registry.engine import Engine
from scaling.registry.registry import Reference
from scaling.registry.update_rule import UpdateRule


class Options(UpdateRule):
    """Options of engine `resident`. Only the options of the update rule have defaults."""

    precision: Precision
    """Precision of convolutions and matrix products. Weights and updates are always float32."""
    channels_last: bool
    """Stores activations in channels-last order, which tensor cores prefer."""
    compile: bool
    """Compiles the model, augmentation, loss and update with torch.compile."""
    cuda_graph: bool
    """Replays each training step as one CUDA graph. Needs a GPU."""
    fused_norms: bool
    """Trains resnet18-cifar with the project's Triton kernels for batch norms, residuals and ReLUs,
    and computes its first convolution as a matrix product. Needs a GPU and `channels_last`."""

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.fused_norms and not self.channels_last:
            raise ValueError("fused_norms is true and channels_last is false: fused_norms needs it")
        return self


# Sharded strategies have their own update: plain SGD.
OF_THE_UPDATE = set(UpdateRule.model_fields) - {"label_smoothing"}

KERNELS = Reference("extras.kernels.fused:FusedResNet")
ENTRY = Engine(
    name="resident",
    trainer=Reference("scaling.training.resident:Resident"),
    options=Options,
    gpu_options=("cuda_graph", "fused_norms"),
    only_with=dict.fromkeys(sorted(OF_THE_UPDATE), ("ddp", "dp")),
    kernels=KERNELS,
)
