"""Print the grid of the study in results/ with the state of each cell, during or after a run.

A cell's state is its record's status (`done` for ok); without a record it is `running` if a process
of this machine makes it, or one of another machine has reported within the time limit, `failed` if
its log has an error, else `missing`. For a cell that waits for a lease it names the holder.
"""

import json
import time
from pathlib import Path

import pandas as pd
import psutil

from scaling.config import stored
from scaling.config.config_file import read_config
from scaling.core import command_line, environment, files, grid
from scaling.core.errors import UserError
from scaling.core.records.run import RUN
from scaling.launch.lease import WAITS

RESULTS, LOGS = Path("results"), Path("logs")
CONFIG = RESULTS / stored.CONFIG


def _counted(states: pd.Series, alone: int = 1) -> str:
    """Return `done`, or for more than `alone` runs `2 done, 1 missing`."""
    counts = states.value_counts(sort=False).items()
    return ", ".join(str(state) if len(states) <= alone else f"{n} {state}" for state, n in counts)


def _state(record: Path, log: Path, commands: str, limit: float) -> tuple[str, str | None]:
    """Return the state of the run that makes `record`, and its log's error or wait."""
    if record.exists():
        try:
            return RUN.read(record)["status"].replace("ok", "done"), None
        except UserError as error:
            return "failed", str(error)
    end = files.log_end(log).splitlines() if log.exists() else []
    if f"--output {record}" in commands or _reports_elsewhere(record.parent, limit):
        return "running", next((line for line in end[-1:] if line.startswith(WAITS)), None)
    errors = [line for line in end if "rror: " in line]
    return ("failed", errors[-1]) if errors else ("missing", None)


def _reports_elsewhere(folder: Path, limit: float) -> bool:
    """Return whether ranks on another machine have reported in the last `limit` seconds."""
    for path in folder.glob(".run.ranks.*/rank*.jsonl"):
        first = path.read_text(encoding="utf-8").partition("\n")[0]
        young = time.time() - path.stat().st_mtime < limit
        if young and first and json.loads(first)["host"] != environment.host():
            return True
    return False


@command_line.script
def main(config: Path = Path("config/config.yaml")) -> None:
    """Print the grid; `config` is read if results/ has no configuration yet."""
    source = CONFIG if CONFIG.exists() else config
    study = read_config(source)
    limit = study["machine"]["time_limit_seconds"]
    processes = [found.info for found in psutil.process_iter(["cmdline", "cwd"])]
    here = [found for found in processes if found["cwd"] == str(Path.cwd())]
    commands = "\n".join(" ".join(found["cmdline"] or ()) for found in here)
    rows, errors = [], []
    for cell in grid.of(study):
        log = cell.log_path(LOGS)
        state, error = _state(cell.record_path(RESULTS / "runs"), log, commands, limit)
        rows.append({**vars(cell), "state": state})
        errors += [f"{log}\n  {error}"] if error else []
    runs = pd.DataFrame(rows).rename(columns={"gpus": "GPUs"})
    print(f"{study['study']} ({source}), {_counted(runs['state'], 0)}\n")
    table = runs.pivot_table(
        "state", ["recipe", "strategy", "GPUs"], "batch_size", _counted, sort=False
    )
    print(table.reset_index().rename_axis(columns=None).to_string(index=False))
    records = stored.records(study)
    kinds = [kind for kind in records if kind not in ("runs", *stored.BACKENDS)]
    others = [path for kind in kinds for path in records[kind]]
    there = sum((RESULTS / path).exists() for path in others)
    print(f"\nOther measurements: {there} of {len(others)} done")
    print("\n".join(errors).encode("ascii", "replace").decode())
