"""Recipe `tuned`: what the GPUs give when nothing holds them back."""

from dataclasses import dataclass
from typing import Literal

from scaling.registry.recipe import Recipe
from scaling.registry.registry import Reference


@dataclass(frozen=True)
class Options:
    """The options of recipe `tuned`."""

    precision: Literal["float32", "tf32", "bf16"]
    """Of convolutions and matrix products. Weights and the update are float32 in all."""
    channels_last: bool
    """Keeps activations in channels-last order, which tensor cores want."""
    compile: bool
    """Compiles with torch.compile: the model (with `fused_norms` its last layers), augmentation,
    loss and update."""
    cuda_graph: bool
    """Replays each training step as one CUDA graph."""
    fused_norms: bool
    """Trains batch norms, residuals and rectifiers by Triton kernels of the project, with the
    fewest passes over the activations, and the first convolution as a matrix product. Needs
    `channels_last`."""

    def __post_init__(self) -> None:
        if self.fused_norms and not self.channels_last:
            raise ValueError(
                "fused_norms is true and channels_last is false "
                "(allowed: false, or channels_last true)"
            )


ENTRY = Recipe(
    name="tuned",
    trainer=Reference("scaling.training.tuned:Tuned"),
    options=Options,
    gpu_options=("cuda_graph", "fused_norms"),
    strategies=("dp", "ddp"),
    models=("resnet18-cifar",),
    sweep_kinds={"ddp": "tuned_bucket"},
)
