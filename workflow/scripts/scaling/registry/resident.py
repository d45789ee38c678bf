"""Engine `resident`: images on the device, steps compiled and replayed as CUDA graphs."""

from typing import Self

from pydantic import model_validator

from scaling.core.section import Precision
from scaling.registry.engine import Engine
from scaling.registry.registry import Reference
from scaling.registry.update_rule import UpdateRule


class Options(UpdateRule):
    """The options of engine `resident`; those of the update may be left out."""

    precision: Precision
    """Of convolutions and matrix products. Weights and the update are float32 in all."""
    channels_last: bool
    """Keeps activations in channels-last order, which tensor cores want."""
    compile: bool
    """Compiles model, augmentation, loss and update with torch.compile."""
    cuda_graph: bool
    """Replays each training step as one CUDA graph. Needs a GPU."""
    fused_norms: bool
    """Trains batch norms, residuals and rectifiers of resnet18-cifar by Triton kernels of the
    project, and the first convolution as a matrix product. Needs a GPU and `channels_last`."""

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.fused_norms and not self.channels_last:
            raise ValueError("fused_norms is true and channels_last is false: fused_norms needs it")
        return self


# Sharded strategies update the weights themselves, by plain SGD.
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
