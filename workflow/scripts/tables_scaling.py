"""Write the tables of a study's runs and machine, with an audit."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from scaling.core import command_line, files
from scaling.core.grid import expand
from scaling.core.records.machine import CHECK, PEAKS, SWEEP
from scaling.tables import limits, schema
from scaling.tables.accuracy import accuracy
from scaling.tables.audit import audit
from scaling.tables.communication import (
    bandwidth,
    communication,
    readings,
    swept_gradient_bytes,
)
from scaling.tables.epoch_parts import epoch_parts, in_memory, ranks
from scaling.tables.measurements import costs, device_time, step_classes
from scaling.tables.runs import Run, provenance, read_runs
from scaling.tables.speedup import speedup
from scaling.tables.timing import timing
from scaling.tables.utilization import of_classes, utilization

OF_TIMES = (timing, in_memory, ranks, device_time, step_classes, costs)
OF_MACHINE = ("interconnect", "peaks", "machine")


def _of_runs(records: list[Run], per_gpu_hour: float | None) -> dict[str, pd.DataFrame]:
    found = {make.__name__: make(records) for make in OF_TIMES}
    found["provenance"] = provenance(records)
    memory = found["in_memory"]
    found["communication"] = communication(found["timing"], memory, readings(records))
    if per_gpu_hour is not None:
        times = found["timing"]
        gpu_hours = times["gpus"] * times["epoch_seconds"] / 3600
        found["costs"]["money_per_epoch"] = gpu_hours * per_gpu_hour
    # Repeats train alike: only the first counts for accuracy.
    found["accuracy"] = accuracy([run for run in records if not run[0].repeat])
    return found


def _of_machine(
    peaks: dict[str, Any], sweeps: tuple[Path, ...], machine: tuple[Path, ...]
) -> dict[str, pd.DataFrame]:
    swept = limits.interconnect([SWEEP.read(path) for path in sweeps])
    findings = [one for path in machine for one in CHECK.read(path)["findings"]]
    return {
        "interconnect": swept,
        "peaks": limits.peaks(peaks),
        "machine": schema.frame("machine", findings),
    }


def _derived(found: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Return the tables that follow from those of times and of the machine."""
    times, costs, link = found["timing"], found["costs"], found["interconnect"]
    exposed = found["communication"]
    epochs = epoch_parts(times, found["in_memory"], exposed)
    used = utilization(times, epochs, found["peaks"], costs, found["device_time"])
    return {
        "speedup": speedup(times, costs),
        "bandwidth": bandwidth(times, exposed, link, swept_gradient_bytes(link), costs),
        "epoch_parts": epochs,
        "utilization": used,
        "step_classes": of_classes(found["step_classes"], used, found["peaks"]),
    }


@command_line.script
def main(
    grid: dict[str, Any],
    runs: Path,
    study: str,
    tables: Path,
    cells: Path,
    peaks: Path,
    sweeps: tuple[Path, ...] = (),
    machine: tuple[Path, ...] = (),
    partial: bool = False,
    per_gpu_hour: float | None = None,
) -> None:
    """Write cells.csv, the tables of the grid's runs and of the machine, and topology.txt.

    Runs may lack a record if the study is `partial`. `per_gpu_hour` is the price of a GPU hour, if
    known.
    """
    listed = expand(**grid)
    files.write_text(cells, pd.DataFrame(listed).to_csv(index=False, lineterminator="\n"))
    document = PEAKS.read(peaks)
    found = _of_runs(read_runs(listed, runs, partial), per_gpu_hour)
    found |= _of_machine(document, sweeps, machine)
    found |= _derived(found)
    found["audit"] = audit(schema.StudyTables(study, found, "", {}))
    schema.write_all(found, tables, study)
    files.write_text(tables / "topology.txt", limits.topology(document))
