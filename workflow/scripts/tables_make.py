"""Write all tables of a study, and claims.json with its answers to the lab's questions."""

from dataclasses import asdict
from operator import itemgetter
from pathlib import Path
from typing import Any

import pandas as pd

from scaling.claims.evaluate import evaluate
from scaling.core import command_line, files
from scaling.core.grid import CELL_KEYS, expand
from scaling.core.records.experiments import CHECK, PEAKS, SWEEP, SYNCHRONIZATION, VARIANT
from scaling.core.records.run import RUN, TECHNIQUE
from scaling.registry.entries import SYNTHETIC
from scaling.tables import measurements, quantization, schema, synchronization, work
from scaling.tables.accuracy import accuracy, convergence, remedies, trained_to_accuracy
from scaling.tables.epoch_parts import audit, bandwidth, communication, utilization
from scaling.tables.noise import ENDS, Noise, name_machines
from scaling.tables.ratios import speedup
from scaling.tables.timing import provenance, read_runs, timing

OF_RUNS = (timing, measurements.device_time, measurements.costs, provenance)
JOULES = ["joules_per_image", "joules_per_image_low", "joules_per_image_high"]


RESULTS = {
    "timing": {"epoch_seconds": "s", "samples": ""},
    "speedup": {"speedup": "1", "efficiency": "1"},
    "utilization": {"images_per_second": "1/s", "loading_share": "1", "communication_share": "1"},
    "costs": {"peak_memory_bytes": "B", "joules_per_image": "J", "startup_seconds": "s"},
}
"""Units of the quantities of results.json, by the tables that have them."""


def results_of(tables: schema.StudyTables) -> list[dict[str, Any]]:
    """Return a row for each known figure: configuration, quantity, value, 95 % interval and unit.

    The interval is None where the study has none.
    """
    units, rows = tables.timing.set_index(CELL_KEYS)["unit"], []
    for name, quantities in RESULTS.items():
        for row in getattr(tables, name).to_dict("records"):
            cell = {key: row[key] for key in CELL_KEYS}
            samples = units.get(tuple(cell.values())) or "images"
            for quantity, unit in quantities.items():
                ends = [row.get(f"{quantity}_{end}") for end in ("low", "high")]
                figure: dict[str, Any] = {"quantity": quantity.replace("images", "samples")}
                figure |= {"value": row[quantity]}
                figure |= {"interval": None if any(map(pd.isna, ends)) else ends}
                figure |= {"unit": {"": samples, "1/s": f"{samples}/s"}.get(unit, unit)}
                rows += [{"configuration": cell} | figure] if pd.notna(row[quantity]) else []
    return rows


def of_runs(
    study: str,
    tables: Path,
    grid: dict[str, Any],
    runs: Path,
    peaks: tuple[Path, ...],
    sweeps: tuple[Path, ...],
    machine: tuple[Path, ...],
    partial: bool,
    per_gpu_hour: float | None,
    commands: dict[str, Any],
) -> dict[str, pd.DataFrame]:
    """Return the tables of the grid's runs and of the machine; write their files."""
    listed = expand(**grid)
    cells = pd.DataFrame(listed).to_csv(index=False, lineterminator="\n")
    files.write_text(tables.with_name("cells.csv"), cells)
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
    found["communication"] = communication(so_far, records)
    found |= {make.__name__: make(so_far) for make in (speedup, bandwidth)}
    found["utilization"] = utilization(so_far)
    found["step_classes"] = measurements.step_classes(so_far, records)
    found["audit"] = audit(so_far, pd.concat([measurements.slow_ranks(records), doubts]))
    files.write_json(tables.with_name("results.json"), results_of(so_far))
    # Records lack leading blanks; without the tab the header is shifted by a column.
    printed = next((one["topology"] or "" for one in environments if "topology" in one), "").strip()
    files.write_text(tables / "topology.txt", f"\t{printed}\n" if printed else "")
    return found


@command_line.script
def main(
    study: str,
    tables: Path,
    source: str = "",
    grid: dict[str, Any] = {},  # noqa: B006
    runs: Path = Path("runs"),
    peaks: tuple[Path, ...] = (),
    sweeps: tuple[Path, ...] = (),
    machine: tuple[Path, ...] = (),
    partial: bool = False,
    per_gpu_hour: float | None = None,
    commands: dict[str, Any] = {},  # noqa: B006
    margin: float = 0.0,
    techniques: tuple[Path, ...] = (),
    trainings: tuple[Path, ...] = (),
    target: float = 1.0,
    ranks: tuple[Path, ...] = (),
    variants: tuple[Path, ...] = (),
) -> None:
    """Write the tables of the `grid`, if there is one, and of each kind of record that exists.

    Runs may lack a record if the study is `partial`; `per_gpu_hour` is the price of a GPU hour;
    `commands` are the recipes that are a user's own. With `techniques` a loss of less than `margin`
    counts as closed; `trainings` are full trainings towards a test accuracy of `target`. Of the
    images of a `source` that are random nothing is learned.
    """
    found: dict[str, pd.DataFrame] = {}
    if grid:
        limits = peaks, sweeps, machine
        found = of_runs(study, tables, grid, runs, *limits, partial, per_gpu_hour, commands)
    if techniques:
        found["convergence"] = convergence([TECHNIQUE.read(path) for path in techniques])
        found["remedies"] = remedies(found["convergence"], margin)
    if trainings:
        trained = [RUN.read(path) for path in trainings]
        name_machines(trained)
        found["trained_to_accuracy"] = trained_to_accuracy(trained, target)
    if ranks:
        documents = [SYNCHRONIZATION.read(path) for path in ranks]
        found["sampler"] = synchronization.orders(documents)
        found["collectives"] = synchronization.collectives(documents)
        found["buffers"] = synchronization.buffers(documents)
    if variants:
        measured = sorted(map(VARIANT.read, variants), key=itemgetter("seed"))
        found["quantization"] = quantization.variants(measured)
        found["quantization_layers"] = quantization.layers(measured)
        found["quantization_histograms"] = quantization.histograms(measured)
        found["quantization_paired"] = quantization.paired(measured)
    schema.write(found, tables, study)
    written = [schema.TABLES[name].path(tables, study) for name in found]
    findings = evaluate(schema.read_study(study, written), learned=source != SYNTHETIC.name)
    files.write_json(tables / "claims.json", asdict(findings))
