"""Print the grid of the study in results/ with the state of each cell, while it runs or after.

A cell is what its record says (`done` where that is ok), `running` where a process of this machine
makes it, or one of another machine has reported within the time limit, `failed` where its log has
an error, and else `missing`.
"""

import json
import time
from collections import Counter, defaultdict
from pathlib import Path

import pandas as pd
import psutil
import yaml

from scaling.config import stored
from scaling.core import command_line, environment, grid
from scaling.core.errors import UserError, run_script
from scaling.core.records import read_record

RESULTS, LOGS = Path("results"), Path("logs")


@command_line.script
def main(config: Path = Path("config/config.yaml")) -> None:
    """Print it; `config` is read where results/ has not kept its own yet."""
    source = RESULTS / stored.CONFIG if (RESULTS / stored.CONFIG).exists() else config
    study = yaml.safe_load(source.read_text(encoding="utf-8"))
    commands = _commands_here()
    rows: dict[tuple[str, ...], dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    states: Counter[str] = Counter()
    errors = []
    for cell in grid.expand(**study["grid"]):
        record = cell.record_path(RESULTS / "runs")
        place = record.parent.relative_to(RESULTS)
        log = LOGS.joinpath("train_run", *place.parts[1:]).with_suffix(".log")
        state, error = _state(record, log, commands, study["machine"]["time_limit_seconds"])
        rows[cell.recipe, cell.strategy, f"{cell.gpus}"][f"{cell.batch_size}"].append(state)
        states[state] += 1
        if error:
            errors.append(f"{log}\n  {error}")
    print(f"{study['study']} ({source}): {_counted(states)}\n")
    table = pd.DataFrame(
        {
            **dict(zip(("recipe", "strategy", "GPUs"), row, strict=True)),
            **{size: _counted(Counter(found)) for size, found in sizes.items()},
        }
        for row, sizes in rows.items()
    )
    print(table.to_string(index=False))
    others = [*stored.other_records(study), *stored.convergence_records(study)]
    others += stored.synchronization_records(study)
    there = sum((RESULTS / path).exists() for path in others)
    print(f"\nOther measurements: {there} of {len(others)} done")
    print("\n".join(errors).encode("ascii", "replace").decode())


def _counted(states: Counter[str]) -> str:
    """`done`, or of several runs `2 done, 1 missing`."""
    alone = states.total() == 1
    return ", ".join(state if alone else f"{count} {state}" for state, count in states.items())


def _commands_here() -> str:
    """The command lines of this machine's processes that work in this folder."""
    processes = psutil.process_iter(["cmdline", "cwd"])
    here = [found.info for found in processes if found.info["cwd"] == str(Path.cwd())]
    return "\n".join(" ".join(found["cmdline"] or ()) for found in here)


def _state(record: Path, log: Path, commands: str, limit: float) -> tuple[str, str | None]:
    """The state of the run that makes `record`, and the last error in its log where it failed."""
    if record.exists():
        try:
            return read_record(record)["status"].replace("ok", "done"), None
        except UserError as error:
            return "failed", str(error)
    if f"--output {record}" in commands or _reports_elsewhere(record.parent, limit):
        return "running", None
    said = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.exists() else []
    errors = [line for line in said if "rror: " in line]
    return ("failed", errors[-1]) if errors else ("missing", None)


def _reports_elsewhere(folder: Path, limit: float) -> bool:
    """Whether ranks on another machine have reported in the last `limit` seconds."""
    for path in folder.glob(".run.ranks.*/rank*.jsonl"):
        first = path.read_text(encoding="utf-8").partition("\n")[0]
        young = time.time() - path.stat().st_mtime < limit
        if young and first and json.loads(first)["host"] != environment.host():
            return True
    return False


if __name__ == "__main__":
    run_script(main)
