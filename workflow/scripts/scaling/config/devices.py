"""Check that this machine has the devices and programs that a study's jobs require."""

import math
import os
import re
import shlex
import shutil
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from scaling.core import environment, grid
from scaling.core.errors import UserError
from scaling.core.section import refuse
from scaling.registry.engine import ENGINES
from scaling.registry.strategy import STRATEGIES

LAUNCHER = re.compile(r"torchrun|accelerate|deepspeed|python[\d.]*")
"""Programs that start a Python script."""


def unsupported(
    device: str, strategies: Collection[str], recipes: Mapping[str, Mapping[str, Any]], devices: int
) -> Iterator[str]:
    """Yield a sentence for each strategy or recipe option that `device` does not support.

    An option also yields a sentence if one of the recipe's strategies does not support the option.
    `devices` is the largest number of GPUs of a run.
    """
    for name in strategies if device == "cpu" and devices > 1 else ():
        if STRATEGIES.find(name).needs_gpu:
            yield f"grid.strategies has {name}, which needs GPUs for more than one: this is a CPU"
    for name, options in recipes.items():
        engine = ENGINES.find(options["engine"])
        for switch in engine.gpu_options if device == "cpu" else ():
            if options[switch]:
                yield f"recipes.{name}.{switch} is true, which needs a GPU: this is a CPU"
        used = set(options.get("strategies") or strategies) & set(strategies)
        most = min(devices, max(options.get("gpus") or [devices]))
        for key, able in engine.only_with.items() if most > 1 else ():
            default = engine.options.model_fields[key].default
            if options.get(key, default) != default and (others := used.difference(able)):
                cannot = f"{options[key]}, which strategy {min(others)} cannot have"
                allowed = f"recipes.{name}.strategies of {', '.join(able)}"
                yield f"recipes.{name}.{key} is {cannot} (allowed: {allowed})"
                break


def need_newer_gpu(device: str, recipes: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield a sentence for each recipe of precision bf16 if a visible GPU does not support bf16."""
    old = device == "cuda" and environment.older_gpu(environment.AMPERE)
    for name, options in recipes.items():
        if old and options.get("precision") == "bf16":
            yield f"recipes.{name}.precision is bf16 and {old}: bf16 needs 8.0, set it to float32"


def cores(limit: Path = Path("/sys/fs/cgroup/cpu.max")) -> int:
    """Return how many CPU cores this process may use, by affinity and the quota in file `limit`."""
    count = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    with suppress(OSError, ValueError):
        quota, period = map(int, limit.read_text().split())
        count = min(count, math.ceil(quota / period))
    return count


def check(config: dict[str, Any], wanted: int, granted: int | None) -> None:
    """Raise UserError if devices do not suit `config`, or if fewer than `wanted` are available.

    `granted` is the number of GPUs in Snakemake's --resources, or None.
    """
    machine, cells, on = config["machine"], grid.of(config), config["parts"]
    timed = {cell.recipe: config["recipes"][cell.recipe] for cell in cells}
    device = environment.resolve_device(config["device"])
    messages = [
        *unsupported(device, {cell.strategy for cell in cells if cell.gpus > 1}, timed, wanted),
        *need_newer_gpu(device, config["recipes"]),
    ]
    per_node, threads = machine["gpus_per_node"], machine["cpu_threads"]
    there, what = len(environment.visible_gpus()), "GPUs"
    if device == "cpu":
        there, what = cores() // threads, f"CPU cores for {threads}-thread processes"
    full = config["time_to_accuracy"]["gpus"] if "time_to_accuracy" in on else []
    of_grid = wanted in config["grid"]["gpus"] and {"scaling", "proofs"} & {*on}
    key = "grid.gpus" if of_grid or wanted not in full else "time_to_accuracy.gpus"
    fewer = "remove the larger numbers"
    spread = "run on a cluster (--profile slurm), or set it to null"
    for here, limit, remedy in (
        (f"machine.gpus_per_node is {per_node}", per_node, spread),
        (f"this machine has {there} {what}", there, fewer),
        (f"--resources gpu={granted} grants fewer", granted, fewer),
    ):
        if limit is not None and wanted > limit:
            messages.append(f"{key} requires {wanted}, but {here}: {remedy}")
    if messages:
        raise UserError("; ".join(messages))


def check_programs(config: dict[str, Any]) -> None:
    """Raise UserError for each command whose program or Python script does not exist here."""
    refuse(
        f"recipes.{name}.command starts {first}, which is no program here (allowed: a path, after "
        "chmod +x)"
        for name, own in config["recipes"].items()
        for first in shlex.split(own.get("command", ""))[:1]
        if "{" not in first and shutil.which(first) is None
    )
    scripts = {name: _script(own.get("command", "")) for name, own in config["recipes"].items()}
    refuse(
        f"recipes.{name}.command starts {script}, which does not exist in {Path.cwd()}"
        for name, script in scripts.items()
        if script and not Path(script).exists()
    )


def _script(command: str) -> str:
    """Return the path of the Python script that `command` starts; "" if none is recognized."""
    first, *rest = shlex.split(command) or [""]
    named = next((word for word in rest if word in ("-c", "-m") or word.endswith(".py")), "")
    known = LAUNCHER.fullmatch(Path(first).name) and named.endswith(".py") and "{" not in named
    return named if known else ""
