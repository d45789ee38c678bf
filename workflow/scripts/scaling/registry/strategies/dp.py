"""DataParallel: one process that copies the model to every GPU in each step."""

from scaling.registry.registry import Reference
from scaling.registry.strategy import Strategy


def processes(gpus: int) -> int:
    """One, whatever the GPUs."""
    return 1


def busiest_bytes(gpus: int, gradient_bytes: float) -> float:
    """2(N-1) · K: GPU 0 sends its parameters to each other GPU and gets their gradients back.

    Inputs and outputs come on top and are not counted.
    """
    return 2 * (gpus - 1) * gradient_bytes


ENTRY = Strategy(
    name="dp",
    title="DataParallel",
    processes=processes,
    busiest_bytes=busiest_bytes,
    sweep_kind="gradients",
    all_reduces=False,
    # Parameters go out before the forward pass, gradients come back after the backward pass.
    overlaps=False,
    replicates=True,
    needs_gpu=True,
    spans_nodes=False,
    # Hosts of more GPUs are rare.
    most_gpus=8,
    wrap=Reference("scaling.training.data_parallel:wrap"),
)
