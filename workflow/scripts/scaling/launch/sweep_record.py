"""The record of an interconnect sweep, sweep.json."""

from typing import Any

from scaling.core import environment
from scaling.core.errors import UserError
from scaling.launch.launcher import Ending

MESSAGE_KINDS = ("sweep", "bucket", "tuned_bucket", "gradients")


def assemble(
    gpus: int, surroundings: dict[str, Any], lines: list[dict[str, Any]], ending: Ending
) -> dict[str, Any]:
    """The document from what the ranks reported; UserError when a rank failed.

    `rows`: kind, message_bytes, seconds (one per repeat: of one all-reduce, the slowest rank's),
    correct. `gradient_bytes` is the size of the model's gradients.
    """
    starts = [line for line in lines if line["kind"] == "start"]
    ends = [line for line in lines if line["kind"] == "end"]
    if ending.returncode != 0 or len(ends) < gpus:
        cause = "its time limit" if ending.timed_out else f"exit status {ending.returncode}"
        raise UserError(
            f"the all-reduce sweep over {gpus} GPUs ended early with {cause}: see the log above"
        )
    return {
        "gpus": gpus,
        "backend": "nccl" if surroundings["device"] == "cuda" else "gloo",
        "device": surroundings["device"],
        "gradient_bytes": ends[0]["gradient_bytes"],
        "rows": [
            {key: line[key] for key in ("kind", "message_bytes", "seconds", "correct")}
            for line in lines
            if line["kind"] in MESSAGE_KINDS
        ],
        "environment": {
            **surroundings,
            **environment.leased_gpus(ending.gpus),
            **environment.seen_by(starts),
            "ended": environment.now(),
        },
    }
