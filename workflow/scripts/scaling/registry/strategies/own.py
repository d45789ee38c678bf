"""A user's own command, which spreads its training over GPUs in a way that is not known here."""

from scaling.registry.registry import Reference
from scaling.registry.strategy import Strategy

ENTRY = Strategy(
    name="own",
    title="own command",
    processes=lambda gpus: 1,
    busiest_bytes=lambda gpus, gradient_bytes: 0.0,
    sweep_kind="",
    overlaps=False,
    replicates=False,
    needs_gpu=False,
    spans_nodes=True,
    wrap=Reference("scaling.launch.own_trainer:run"),
)
