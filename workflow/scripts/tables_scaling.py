"""Write the tables of a study's runs and machine, with an audit."""

from pathlib import Path
from typing import Any

import pandas as pd

from scaling.core import command_line, files
from scaling.core.grid import expand
from scaling.core.records.machine import CHECK, PEAKS, SWEEP
from scaling.tables import measurements, schema, work
from scaling.tables.accuracy import accuracy
from scaling.tables.epoch_parts import audit, bandwidth, communication, utilization
from scaling.tables.noise import ENDS, Noise, name_machines
from scaling.tables.ratios import speedup
from scaling.tables.tidy import tidy
from scaling.tables.timing import provenance, read_runs, timing

OF_RUNS = (timing, measurements.device_time, measurements.costs, provenance)
JOULES = ["joules_per_image", "joules_per_image_low", "joules_per_image_high"]


@command_line.script
def main(
    grid: dict[str, Any],
    runs: Path,
    study: str,
    tables: Path,
    cells: Path,
    peaks: tuple[Path, ...] = (),
    sweeps: tuple[Path, ...] = (),
    machine: tuple[Path, ...] = (),
    partial: bool = False,
    per_gpu_hour: float | None = None,
    commands: dict[str, Any] = {},  # noqa: B006
    figures: Path | None = None,
) -> None:
    """Write cells.csv, the tables of the grid's runs and of the machine, and topology.txt.

    Runs may lack a record if the study is `partial`; `per_gpu_hour` is the price of a GPU hour;
    `commands` are the recipes that are a user's own. `figures` is results.json, all in one list.
    """
    listed = expand(**grid)
    files.write_text(cells, pd.DataFrame(listed).to_csv(index=False, lineterminator="\n"))
    records = read_runs(listed, runs, partial)
    measured, swept, checked = (
        [kind.read(path) for path in paths]
        for kind, paths in ((PEAKS, peaks), (SWEEP, sweeps), (CHECK, machine))
    )
    documents = [*(own for _, own in records if own), *measured, *swept, *checked]
    name_machines(documents)
    environments = [one["environment"] for one in documents]
    found = {make.__name__: make(records) for make in OF_RUNS}
    energy = Noise(found["provenance"], JOULES[0]).times(found["costs"])
    found["costs"][JOULES] = energy[["value", *ENDS]]
    found["timing"], doubts = work.settle(found["timing"], records, commands)
    if per_gpu_hour is not None:
        seconds = found["timing"]["gpus"] * found["timing"]["epoch_seconds"]
        found["costs"]["money_per_epoch"] = seconds / 3600 * per_gpu_hour
    # Repeats train alike: only the first counts for accuracy.
    found["accuracy"] = accuracy([run for run in records if not run[0].repeat])
    found["interconnect"] = measurements.interconnect(swept)
    found["peaks"] = measurements.peaks(measured)
    found["machine"] = measurements.findings(checked)
    # Of the tables so far, each of the next ones is made.
    so_far = schema.StudyTables(study, found)
    found["communication"] = communication(so_far, measurements.readings(records))
    found |= {make.__name__: make(so_far) for make in (speedup, bandwidth)}
    found["utilization"] = utilization(so_far)
    found["step_classes"] = measurements.step_classes(so_far, records)
    found["audit"] = audit(so_far, pd.concat([measurements.slow_ranks(records), doubts]))
    schema.write(found, tables, study)
    if figures:
        files.write_json(figures, tidy(so_far))
    # Records lack leading blanks; without the tab the header is shifted by a column.
    printed = next((one["topology"] or "" for one in environments if "topology" in one), "").strip()
    files.write_text(tables / "topology.txt", f"\t{printed}\n" if printed else "")
