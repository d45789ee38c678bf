"""Tables of the runs: times, accuracy, start-up, provenance and what instruments measured."""

from pathlib import Path
from typing import Any

import pandas as pd

from scaling.core import command_line, files
from scaling.core.grid import expand
from scaling.tables import schema
from scaling.tables.accuracy import accuracy
from scaling.tables.epoch_parts import in_memory, ranks
from scaling.tables.measurements import costs, device_time, readings
from scaling.tables.runs import provenance, read_runs
from scaling.tables.timing import startup, timing

MAKERS = (timing, startup, in_memory, ranks, readings, device_time, costs, provenance)


@command_line.script
def main(
    grid: dict[str, Any],
    runs: Path,
    study: str,
    tables: Path,
    cells: Path,
    partial: bool = False,
    per_gpu_hour: float | None = None,
) -> None:
    """Write cells.csv, the runs of the grid, and the tables that follow from their records.

    Runs without a record are accepted where the study is `partial`. An epoch costs money where it
    is known what an hour of a GPU costs (`per_gpu_hour`).
    """
    listed = expand(**grid)
    files.write_text(cells, pd.DataFrame(listed).to_csv(index=False, lineterminator="\n"))
    records = read_runs(listed, runs, partial)
    found = {make.__name__: make(records) for make in MAKERS}
    if per_gpu_hour is not None:
        times = found["timing"]
        gpu_hours = times["gpus"] * times["epoch_seconds"] / 3600
        found["costs"]["money_per_epoch"] = gpu_hours * per_gpu_hour
    # What a repeat of a seed learns is no other seed's.
    found["accuracy"] = accuracy([run for run in records if not run[0].repeat], study)
    schema.write_all(found, tables, study)
