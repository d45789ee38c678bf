"""Lock GPUs or the CPU, start processes that measure on them, and collect their reports."""

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from scaling.core import code_digest, environment
from scaling.core.environment import Device
from scaling.core.errors import SNAKEMAKE_VARIABLE, UserError
from scaling.core.training_options import Interconnect, Model, Options, Peaks
from scaling.launch import launcher, lease
from scaling.launch.launcher import ProcessResult
from scaling.registry.registry import Reference


class Measurement(Options):
    """Options of all measurements except runs of the grid.

    `gpus` is the number of GPUs on all nodes; on a CPU, the number of processes.
    """

    output: Path
    gpus: int = 1
    nodes: int = 1
    device: Device = "auto"
    cpu_threads: int = 1
    time_limit_seconds: float = 600


class Sweep(Measurement, Interconnect):
    """Options of the all-reduce sweep on 2 or more GPUs. Sizes of `model`'s gradients are added."""

    model: Model = Model()
    manifest: Path
    """Path of manifest.json. Its numbers of classes and pixels determine the model."""


class Probe(Measurement, Peaks):
    """Options for measuring peak rates on one node."""


class MachineCheck(Measurement):
    """Options of the machine check, which looks for unfit GPUs and hosts before a study."""

    check: Literal["refuse", "warn", "off"] = "refuse"
    """Effect of a finding of severity `bad`: stop the study, warn in the report, or nothing."""
    products: bool = True
    """Whether to time matrix products on all GPUs, which needs PyTorch."""


def run(
    function: str, options: Any, *, processes: int, name: str, advice: str = "", keep: str = ""
) -> ProcessResult:
    """Call `function` (`module:name`) with `options`; return the reports of all `processes` ranks.

    UserError, with `name` and `advice`, if a process fails or the time limit is reached. The time
    limit is no error if there is a report of kind `keep`.
    """
    about = {"options": options.model_dump(mode="json")}
    result = launch_ranks(function, about, options, options.output, options.gpus)
    failed = result.returncode != 0 or len(result.lines["end"]) < processes
    if failed and not (result.timed_out and result.lines[keep]):
        cause = "its time limit" if result.timed_out else f"exit status {result.returncode}"
        raise UserError(f"{name} ended early with {cause}: see the log above{advice}")
    code = code_digest.described(Reference(function).module, __name__)
    return replace(result, environment=result.environment | code)


@contextmanager
def leased(device: Device, gpus: int, options: Any) -> Iterator[tuple[list[str], dict[str, str]]]:
    """Lock GPUs or the CPU in a `with` block; yield names of devices and environment variables.

    Names are CUDA_VISIBLE_DEVICES entries, or the CPU's (`lease.cpu`). The variables are for
    processes that use the locked devices. In the block, SIGTERM raises SystemExit.
    """
    with launcher.terminable():
        on_gpu = device == "cuda"
        there = environment.visible_gpus() if on_gpu else []
        with lease.gpus(gpus, there) if on_gpu else lease.cpu() as names:
            variables = {
                **os.environ,
                "OMP_NUM_THREADS": str(options.cpu_threads),
                "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
                SNAKEMAKE_VARIABLE: "",  # Ends with this process.
            }
            if on_gpu:
                variables["CUDA_VISIBLE_DEVICES"] = ",".join(names)
            else:  # Else PyTorch's profiler logs that there is no GPU.
                variables.setdefault("KINETO_LOG_LEVEL", "9")
            yield names, variables


def launch_ranks(
    function: str, arguments: dict[str, Any], options: Any, output: Path, gpus: int
) -> ProcessResult:
    """Call `function` (`module:name`) in one process per node; return exit status and reports.

    `function` may start several ranks. `gpus` counts the GPUs of all nodes, but this process locks
    only those of its own node. A temporary folder beside `output` has the file job.json, with the
    name of `function` and the `arguments`, and the reports of all ranks.
    """
    device, nodes = environment.resolve_device(options.device), getattr(options, "nodes", 1)
    before = environment.describe(device)
    output.parent.mkdir(parents=True, exist_ok=True)
    for left_by_killed in output.parent.glob(f".{output.stem}.*"):
        remove = shutil.rmtree if left_by_killed.is_dir() else Path.unlink
        remove(left_by_killed)
    with (
        leased(device, gpus // nodes, options) as (names, variables),
        tempfile.TemporaryDirectory(prefix=f".{output.stem}.ranks.", dir=output.parent) as folder,
    ):
        job = Path(folder, "job.json")
        job.write_text(json.dumps({"run": function, "arguments": arguments}, default=str))
        paths = filter(None, [str(code_digest.SCRIPTS), variables.get("PYTHONPATH")])
        variables |= {"PYTHONPATH": os.pathsep.join(paths)}
        command = launcher.command(["-m", "scaling.launch.ranks", str(job)], gpus, nodes)
        result = launcher.launch(command, variables, options.time_limit_seconds)
        lines = launcher.read_logs(Path(folder))
    for stacks in lines["stacks"]:
        print(f"Rank {stacks['rank']}, when a signal ended it:\n{stacks['text']}", file=sys.stderr)
    return replace(
        result, lines=lines, environment=environment.completed(before, names, lines["start"])
    )
