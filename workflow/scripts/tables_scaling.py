"""Write the tables of a study's runs and machine, with an audit."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from scaling.core import command_line, files
from scaling.core.grid import expand
from scaling.core.records.machine import CHECK, PEAKS, SWEEP
from scaling.tables import measurements, schema
from scaling.tables.accuracy import accuracy
from scaling.tables.communication import bandwidth, communication, interconnect, readings
from scaling.tables.epoch_parts import audit, epoch_parts, utilization
from scaling.tables.measurements import costs, device_time, in_memory
from scaling.tables.ratios import speedup
from scaling.tables.timing import Run, provenance, read_runs, timing

OF_TIMES = (timing, in_memory, device_time, costs, provenance)


def _of_runs(records: list[Run], per_gpu_hour: float | None) -> dict[str, pd.DataFrame]:
    found = {make.__name__: make(records) for make in OF_TIMES}
    times = found["timing"]
    found["communication"] = communication(times, found["in_memory"], readings(records))
    if per_gpu_hour is not None:
        gpu_hours = times["gpus"] * times["epoch_seconds"] / 3600
        found["costs"]["money_per_epoch"] = gpu_hours * per_gpu_hour
    # Repeats train alike: only the first counts for accuracy.
    found["accuracy"] = accuracy([run for run in records if not run[0].repeat])
    return found


def _derived(found: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Return the tables that follow from those of times and of the machine."""
    times, costs, exposed = (found[name] for name in ("timing", "costs", "communication"))
    epochs = epoch_parts(times, found["in_memory"], exposed)
    used = utilization(times, epochs, found["peaks"], costs, found["device_time"])
    return {
        "speedup": speedup(times, costs),
        "bandwidth": bandwidth(times, exposed, found["interconnect"], costs),
        "epoch_parts": epochs,
        "utilization": used,
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

    Runs may lack a record if the study is `partial`; `per_gpu_hour` is the price of a GPU hour.
    """
    listed = expand(**grid)
    files.write_text(cells, pd.DataFrame(listed).to_csv(index=False, lineterminator="\n"))
    document, records = PEAKS.read(peaks), read_runs(listed, runs, partial)
    found = _of_runs(records, per_gpu_hour)
    found["interconnect"] = interconnect([SWEEP.read(path) for path in sweeps])
    found["peaks"] = measurements.peaks(document)
    findings = [one for path in machine for one in CHECK.read(path)["findings"]]
    found["machine"] = schema.frame("machine", findings)
    found |= _derived(found)
    used = found["utilization"], found["peaks"]
    found["step_classes"] = measurements.step_classes(records, *used)
    found["audit"] = audit(measurements.slow_ranks(records), found["utilization"])
    schema.write_all(found, tables, study)
    files.write_text(tables / "topology.txt", measurements.topology(document))
