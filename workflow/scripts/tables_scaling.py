"""Write the tables of a study's runs and machine, with an audit."""

from pathlib import Path
from typing import Any

import pandas as pd

from scaling.core import command_line, files
from scaling.core.grid import expand
from scaling.core.records.machine import CHECK, PEAKS, SWEEP
from scaling.tables import measurements, schema
from scaling.tables.accuracy import accuracy
from scaling.tables.epoch_parts import (
    audit,
    bandwidth,
    communication,
    epoch_parts,
    interconnect,
    readings,
    utilization,
)
from scaling.tables.ratios import speedup
from scaling.tables.timing import provenance, read_runs, timing

OF_RUNS = (timing, measurements.in_memory, measurements.device_time, measurements.costs, provenance)


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
    found = {make.__name__: make(records) for make in OF_RUNS}
    # Repeats train alike: only the first counts for accuracy.
    found["accuracy"] = accuracy([run for run in records if not run[0].repeat])
    found["interconnect"] = link = interconnect([SWEEP.read(path) for path in sweeps])
    found["peaks"] = rates = measurements.peaks(document)
    findings = [one for path in machine for one in CHECK.read(path)["findings"]]
    found["machine"] = schema.frame("machine", findings)

    times, costs, memory = found["timing"], found["costs"], found["in_memory"]
    if per_gpu_hour is not None:
        costs["money_per_epoch"] = times["gpus"] * times["epoch_seconds"] / 3600 * per_gpu_hour
    found["speedup"] = speedup(times, costs)
    found["communication"] = exposed = communication(times, memory, readings(records))
    found["bandwidth"] = bandwidth(times, exposed, link, costs)
    found["epoch_parts"] = parts = epoch_parts(times, memory, exposed)
    found["utilization"] = used = utilization(times, parts, rates, costs, found["device_time"])
    found["step_classes"] = measurements.step_classes(records, used, rates)
    found["audit"] = audit(measurements.slow_ranks(records), used)
    schema.write_all(found, tables, study)
    files.write_text(tables / "topology.txt", measurements.topology(document))
