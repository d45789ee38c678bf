"""Whether this machine has the devices that a study's jobs ask for."""

from typing import Any

import psutil

from scaling.core import environment
from scaling.core.errors import UserError
from scaling.registry.recipe import RECIPES
from scaling.registry.strategy import STRATEGIES


def check(config: dict[str, Any], wanted: int, granted: int | None) -> None:
    """Raise UserError where a job on `wanted` devices cannot run on this machine.

    `granted` is what --resources gives to all jobs together, None for no limit.
    """
    per_node = config["machine"]["gpus_per_node"]
    if per_node and wanted > per_node:
        raise UserError(
            f"grid.gpus asks for {wanted} and machine.gpus_per_node is {per_node}: "
            "run on a cluster (--profile slurm), or set gpus_per_node to null"
        )
    if environment.resolve_device(config["device"]) == "cuda":
        there, what = len(environment.visible_gpus()), "GPUs"
    else:
        _check_without_gpus(config, wanted)
        threads = config["machine"]["cpu_threads"]
        there = (psutil.cpu_count() or 1) // threads
        what = f"CPU cores for processes of {threads} threads"
    if wanted > there:
        raise UserError(
            f"grid.gpus asks for {wanted} and this machine has {there} {what}: "
            "remove the larger numbers from grid.gpus or run on a larger machine"
        )
    if granted is not None and wanted > granted:
        raise UserError(
            f"grid.gpus asks for {wanted} and --resources gpu={granted} grants fewer: "
            "raise it, or remove the larger numbers from grid.gpus"
        )


def _check_without_gpus(config: dict[str, Any], wanted: int) -> None:
    for name in config["grid"]["strategies"]:
        if wanted > 1 and STRATEGIES.find(name).needs_gpu:
            raise UserError(f"no GPU is visible and grid.strategies has {name}: use ddp on a CPU")
    for name in config["grid"]["recipes"]:
        for switch in RECIPES.find(name).gpu_options:
            if config["recipes"][name][switch]:
                raise UserError(
                    f"no GPU is visible and recipes.{name}.{switch} is true: set it to false"
                )
