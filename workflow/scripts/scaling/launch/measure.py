"""Launch measuring processes on leased devices and collect their reports."""

import os
import shutil
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scaling.core import environment
from scaling.core.environment import Device
from scaling.core.errors import SNAKEMAKE_VARIABLE, UserError
from scaling.launch import launcher, lease, rank_log
from scaling.launch.launcher import ProcessResult
from scaling.launch.rank_log import RankLog

if TYPE_CHECKING:
    from scaling.launch.ranks import Rank


@dataclass(frozen=True)
class Reports:
    """Reports of all processes of a finished measurement, and their environment.

    `gpus` were leased on this machine; `seconds` passed from the start of the command to the end of
    the last process; `environment` is as `core.environment` describes it.
    """

    lines: list[dict[str, Any]]
    gpus: int
    seconds: float
    environment: dict[str, Any]

    def of(self, kind: str) -> list[dict[str, Any]]:
        """Return the contents of the reported lines of this kind, in order."""
        return [
            {key: value for key, value in line.items() if key not in ("kind", "rank")}
            for line in self.lines
            if line["kind"] == kind
        ]


def run(
    script: str,
    argv: list[str] | None,
    output: Path,
    *,
    name: str,
    advice: str = "",
    device: Device,
    gpus: int,
    processes: int,
    nodes: int = 1,
    cpu_threads: int = 1,
    time_limit: float,
) -> Reports:
    """Run `script` again with its arguments in measuring processes, and return their reports.

    `gpus` and `processes` are totals over all nodes. Raises UserError when a process fails; the
    message calls the measurement `name` and adds `advice`.
    """
    host_info = environment.describe(device)
    arguments = sys.argv[1:] if argv is None else argv
    command = launcher.command(Path(script), arguments, processes, nodes)
    result, lines = launch_ranks(command, output, device, gpus // nodes, cpu_threads, time_limit)
    return collect(host_info, lines, result, processes, name, advice)


def collect(
    host_info: dict[str, Any],
    lines: list[dict[str, Any]],
    result: ProcessResult,
    processes: int,
    name: str,
    advice: str = "",
) -> Reports:
    """Check that all processes succeeded, and complete the environment with their `start` lines."""
    ends = [line for line in lines if line["kind"] == "end"]
    if result.returncode != 0 or len(ends) < processes:
        cause = "its time limit" if result.timed_out else f"exit status {result.returncode}"
        raise UserError(f"{name} ended early with {cause}: see the log above{advice}")
    whole = {
        **host_info,
        **environment.leased_gpus(result.gpus),
        **environment.seen_by([line for line in lines if line["kind"] == "start"]),
        "ended": environment.now(),
    }
    return Reports(lines, len(result.gpus), result.seconds, whole)


def launch_ranks(
    command_line: list[str],
    output: Path,
    device: Device,
    gpus: int,
    cpu_threads: int,
    time_limit: float,
) -> tuple[ProcessResult, list[dict[str, Any]]]:
    """Run the processes of `command_line` on leased GPUs; return their result and their lines.

    `gpus` are this machine's; on other nodes Slurm assigns them. Both the wait for GPUs and the run
    are limited to `time_limit` seconds. The processes report to a temporary folder beside `output`,
    which all nodes of a cluster can read.
    """
    output.parent.mkdir(parents=True, exist_ok=True)
    names: list[str] = []
    prefix = f".{output.stem}.ranks."
    for left_by_killed in output.parent.glob(f"{prefix}*"):
        shutil.rmtree(left_by_killed, ignore_errors=True)
    for left_by_killed in output.parent.glob(f".{output.name}.*"):
        left_by_killed.unlink()
    with ExitStack() as held:
        held.enter_context(launcher.terminable())
        folder = tempfile.TemporaryDirectory(prefix=prefix, dir=output.parent)
        ranks_folder = Path(held.enter_context(folder))
        variables = {
            **os.environ,
            **bytecode_kept(),
            "OMP_NUM_THREADS": str(cpu_threads),
            "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
            launcher.WORKER_VARIABLE: str(ranks_folder),
            SNAKEMAKE_VARIABLE: "",  # They end with this process.
        }
        if device == "cuda":
            there = environment.visible_gpus()
            names = held.enter_context(lease.gpus(gpus, there, time_limit))
            variables["CUDA_VISIBLE_DEVICES"] = ",".join(names)
        else:
            held.enter_context(lease.cpu(time_limit))
        result = launcher.launch(command_line, variables, time_limit)
        lines = rank_log.read_lines(ranks_folder)
    for stacks in rank_log.by_kind(lines)["stacks"]:
        print(f"Rank {stacks['rank']}, when a signal ended it:\n{stacks['text']}", file=sys.stderr)
    return replace(result, gpus=tuple(names)), lines


def bytecode_kept(folder: Path = Path(".snakemake/bytecode")) -> dict[str, str]:
    """Return variables that make Python cache bytecode in `folder`, if PyTorch has none installed.

    Containers often lack it; compiling PyTorch's source would take each process 10 s.
    """
    torch = find_spec("torch")
    if torch is None or torch.cached is None or Path(torch.cached).exists():
        return {}
    return {"PYTHONPYCACHEPREFIX": str(folder.absolute()), "PYTHONDONTWRITEBYTECODE": ""}


@contextmanager
def rank_process(
    log_folder: Path, report: Callable[[RankLog, Exception], None] | None = None
) -> Iterator[RankLog]:
    """Set up this process as a rank of a measurement, and yield its log.

    An exception in the block is passed to `report` and ends the process with status 1; the launcher
    then ends the others. It exits at once, as an orderly shutdown would wait for ever for a rank
    that is in a collective.
    """
    launcher.die_with(os.getppid())
    log = RankLog(log_folder, int(os.environ.get("RANK", "0")))
    with log.stacks_kept():
        try:
            yield log
        except Exception as error:
            traceback.print_exc()
            try:
                if report:
                    report(log, error)
            finally:
                os._exit(1)


@contextmanager
def joined(
    log_folder: Path, device: Device, cpu_threads: int, timeout_seconds: float
) -> Iterator[tuple["Rank", RankLog]]:
    """Set up this process as a rank that has joined the others; log its start and its end."""
    from scaling.launch import ranks  # imports PyTorch, which the launching process does without

    with rank_process(log_folder) as log:
        rank = ranks.join(device, cpu_threads, timeout_seconds)
        log.append("start", ranks.versions(device))
        yield rank, log
        rank.barrier()
        log.append("end", {})
        rank.leave()
