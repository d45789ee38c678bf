"""The record of the synchronization experiments, synchronization.json."""

from collections.abc import Sequence
from typing import Any

from scaling.core import environment
from scaling.core.errors import UserError
from scaling.launch.launcher import Ending
from scaling.synchronization.plan import Plan


def assemble(
    plan: Plan,
    surroundings: dict[str, Any],
    lines: Sequence[dict[str, Any]],
    ending: Ending,
) -> dict[str, Any]:
    """The document from what the ranks reported; UserError when one of them failed.

    `model` has `parameter_bytes` (K) and `buffer_bytes`; `permutations` are of
    `synchronization.worker`, `steps` of `synchronization.steps`, `trainings` of
    `synchronization.training`, `buffer_seconds` of `synchronization.buffer_seconds` (absent from
    records made before they were measured).
    """
    gpus = plan.spec.cell.gpus

    def of(kind: str) -> list[dict[str, Any]]:
        own = ("kind", "rank")
        return [
            {key: value for key, value in line.items() if key not in own}
            for line in lines
            if line["kind"] == kind
        ]

    if ending.returncode != 0 or len(of("end")) < gpus:
        cause = "its time limit" if ending.timed_out else f"exit status {ending.returncode}"
        raise UserError(
            f"the synchronization experiments on {gpus} GPUs ended early with {cause}: see the log "
            "above; where memory is short, set synchronization.batch_size to a smaller value"
        )
    device = surroundings["device"]
    return {
        "gpus": gpus,
        "device": device,
        "backend": "nccl" if device == "cuda" else "gloo",
        "train_images": plan.train_images,
        "parameters": plan.spec.parameters() | {"batch_size": plan.spec.cell.batch_size},
        "model": of("model")[0],
        "permutations": of("permutations"),
        "steps": of("steps"),
        "trainings": of("training"),
        "buffer_seconds": of("buffer_seconds")[0]["rows"],
        "seconds": ending.seconds,
        "environment": {
            **surroundings,
            **environment.leased_gpus(ending.gpus),
            **environment.seen_by(of("start")),
            "ended": environment.now(),
        },
    }
