"""Whether this machine has the devices that a study's jobs ask for."""

from collections.abc import Iterator
from typing import Any

import psutil

from scaling.core import environment
from scaling.core.errors import UserError
from scaling.registry.recipe import RECIPES
from scaling.registry.strategy import STRATEGIES


def need_gpus(config: dict[str, Any], devices: int) -> Iterator[str]:
    """Name each key whose value cannot be on a CPU, in a job on so many `devices`."""
    for name in config["grid"]["strategies"]:
        if devices > 1 and STRATEGIES.find(name).needs_gpu:
            yield f"grid.strategies has {name}, which needs GPUs for more than one device"
    for name in config["grid"]["recipes"]:
        for switch in RECIPES.find(name).gpu_options:
            if config["recipes"][name][switch]:
                yield f"recipes.{name}.{switch} is true, which needs a GPU"


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
    there, what = len(environment.visible_gpus()), "GPUs"
    if environment.resolve_device(config["device"]) == "cpu":
        for said in need_gpus(config, wanted):
            raise UserError(f"{said}, and none is visible")
        threads = config["machine"]["cpu_threads"]
        there = (psutil.cpu_count() or 1) // threads
        what = f"CPU cores for processes of {threads} threads"
    limits = {f"this machine has {there} {what}": there}
    if granted is not None:
        limits[f"--resources gpu={granted} grants fewer"] = granted
    for said, limit in limits.items():
        if wanted > limit:
            raise UserError(
                f"grid.gpus asks for {wanted} and {said}: remove the larger numbers from "
                "grid.gpus, or run on a larger machine"
            )
