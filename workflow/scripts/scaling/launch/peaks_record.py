"""The record of a machine's measured limits, peaks.json."""

from typing import Any

from scaling.core import environment
from scaling.core.errors import UserError
from scaling.launch.launcher import Ending


def assemble(
    cpu_threads: int,
    surroundings: dict[str, Any],
    lines: list[dict[str, Any]],
    ending: Ending,
) -> dict[str, Any]:
    """The document from what the process reported; UserError when it failed.

    `rows`: quantity (matrix_product, device_copy, gpu_to_gpu_copy) with seconds (one per repeat,
    of one operation) and, where they apply, precision, matrix_size (n of n×n), copy_bytes,
    source_gpu, target_gpu. `gpus` took part, 0 on a CPU; the one process has `cpu_threads` threads.
    """
    by_kind = {
        kind: [line for line in lines if line["kind"] == kind] for kind in ("start", "peak", "end")
    }
    if ending.returncode != 0 or not by_kind["end"]:
        cause = "its time limit" if ending.timed_out else f"exit status {ending.returncode}"
        raise UserError(
            f"measuring the machine's limits ended early with {cause}: see the log above; where "
            "memory is short, ask for smaller matrices or copies"
        )
    start = by_kind["start"][0]
    return {
        "device": surroundings["device"],
        "gpus": len(ending.gpus),
        "cpu_threads": cpu_threads,
        "rows": [
            {key: value for key, value in line.items() if key not in ("kind", "rank")}
            for line in by_kind["peak"]
        ],
        "environment": {
            **surroundings,
            **environment.leased_gpus(ending.gpus),
            "hosts": [start["host"]],
            "cuda": start["cuda"],
            "nccl": start["nccl"],
            "ended": environment.now(),
        },
    }
