"""Write all tables of a study, and claims.json, which answers the lab's questions."""

from collections.abc import Callable
from dataclasses import asdict
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any

import pandas as pd

from scaling.claims import accuracy as q4
from scaling.claims import ranks_int8 as q5_to_b
from scaling.claims import scaling as q1_to_q3
from scaling.claims.claim import Answer, Findings
from scaling.core import command_line, files, grid
from scaling.core.grid import CELL_KEYS
from scaling.core.records.kind import CHECK, PEAKS, SWEEP, SYNCHRONIZATION, VARIANT
from scaling.core.records.run import RUN, TECHNIQUE
from scaling.registry.entries import SYNTHETIC
from scaling.tables import accuracy, measurements, ranks_int8, schema, work
from scaling.tables.epoch_parts import audit, bandwidth, communication, utilization
from scaling.tables.noise import ENDS, Noise, name_machines
from scaling.tables.ratios import speedup
from scaling.tables.timing import Run, provenance, read_runs, timing

OF_MACHINE = (measurements.interconnect, measurements.peaks, measurements.machine)
KINDS = {"interconnect": SWEEP, "peaks": PEAKS, "machine": CHECK, "convergence": TECHNIQUE}
OWN = ("synchronization", "quantization")
"""Kinds of records whose tables are made by functions of `ranks_int8` with the table's name."""
KINDS |= {"full_trainings": RUN, "synchronization": SYNCHRONIZATION, "quantization": VARIANT}
RESULTS = {
    "timing": {"epoch_seconds": "s", "samples": "samples"},
    "speedup": dict.fromkeys(["speedup", "efficiency", "fixed_global_batch_speedup"], "1")
    | {"verdict": ""},
    "utilization": {"images_per_second": "samples/s", "loading_share": "1", "exposed_share": "1"},
    "costs": {"peak_memory_bytes": "B", "joules_per_image": "J", "startup_seconds": "s"},
    "learning": {"train_loss": "1", "test_accuracy": "1"},
}
"""Tables and columns that results.json contains, with the unit of each column."""
ANSWERS: dict[str, Callable[[schema.StudyTables], Answer]] = {
    **{"Q1": q1_to_q3.batches, "Q2": q1_to_q3.speedups},
    **{"Q3.1": q1_to_q3.parts, "Q3.2": q1_to_q3.bandwidth, "Q4": q4.answer},
    **{"Q5": q5_to_b.order, "Q6": q5_to_b.messages, "Q7": q5_to_b.replicas, "B": q5_to_b.int8},
}
"""The function that answers each question."""


def results_of(tables: schema.StudyTables) -> list[dict[str, Any]]:
    """Return a row for each known value: configuration, quantity, value, 95 % interval and unit.

    Loss and accuracy are means over seeds. An unknown interval is None.
    """
    units, rows = tables.timing.set_index(CELL_KEYS)["unit"], []
    found = {**tables.found, "learning": accuracy.compare_batches(tables)}
    for table, quantities in RESULTS.items():
        for row in found[table].to_dict("records"):
            cell = {key: row[key] for key in CELL_KEYS}
            samples = units.get(tuple(cell.values())) or "images"
            for quantity, unit in quantities.items():
                ends = [row.get(f"{quantity}_{end}") for end in ENDS]
                if pd.notna(value := row[quantity]) and value != "":
                    name = quantity.replace("images", "samples")
                    result = {"configuration": cell, "quantity": name, "value": value}
                    result["interval"] = None if any(map(pd.isna, ends)) else ends
                    rows.append(result | {"unit": unit.replace("samples", samples)})
    return rows


def learns(config: dict[str, Any]) -> bool:
    """Return whether accuracies mean something. Labels of synthetic images are random."""
    return bool(config["dataset"]["source"] != SYNTHETIC.name)


def of_runs(
    config: dict[str, Any], runs: list[Run], records: dict[str, list[Any]]
) -> schema.StudyTables:
    """Return the tables of the grid's `runs`, and of machines: `records` by kind."""
    found = {make.__name__: make(runs) for make in (timing, measurements.costs, provenance)}
    energy = Noise(found["provenance"], "joules_per_image").times(found["costs"])
    found["costs"][schema.interval("joules_per_image")] = energy[["value", *ENDS]]
    commands = {name: own for name, own in config["recipes"].items() if "command" in own}
    found["timing"], doubts = work.settle(found["timing"], runs, commands)
    if (per_gpu_hour := config["cost"]["per_gpu_hour"]) is not None:
        seconds = found["timing"]["gpus"] * found["timing"]["epoch_seconds"]
        found["costs"]["money_per_epoch"] = seconds / 3600 * per_gpu_hour
    found["accuracy"] = accuracy.accuracy(runs if learns(config) else [])
    found |= {make.__name__: make(records[make.__name__]) for make in OF_MACHINE}
    # Each of the next tables is derived from those before it.
    tables = schema.StudyTables(config["study"], found)
    found["communication"] = communication(tables, runs)
    for make in (speedup, bandwidth, utilization):
        found[make.__name__] = make(tables)
    found["step_classes"] = measurements.step_classes(tables, runs)
    found["audit"] = audit(tables, pd.concat([measurements.slow_ranks(runs), doubts]))
    return tables


def evaluate(tables: schema.StudyTables, learned: bool = True) -> Findings:
    """Return a study's answers and claims, without Q4 unless `learned` (not synthetic images)."""
    found = {name: own(tables) for name, own in ANSWERS.items() if learned or name != "Q4"}
    texts = {name: answer.text for name, answer in found.items() if answer.text}
    return Findings(tables.study, texts, [one for own in found.values() for one in own.claims])


@command_line.script
def main(
    config: dict[str, Any], tables: Path, records: dict[str, tuple[Path, ...]], runs: Path | None
) -> None:
    """Write all tables into the folder `tables`, and results.json beside it.

    `config` is the study's configuration. `runs` is the folder of the grid's records, or null.
    `records` maps each other kind of record to its files. Synthetic images have no accuracy.
    """
    study = config["study"]
    read: dict[str, list[Any]]
    read = {kind: [*map(of.read, records.get(kind, ()))] for kind, of in KINDS.items()}
    read["quantization"].sort(key=itemgetter("seed"))
    found: dict[str, pd.DataFrame] = {}
    if runs:
        of_cells = read_runs(grid.of(config), runs)
        documents = [one for _, one in of_cells if one]
        documents += chain(read["interconnect"], read["peaks"], read["machine"])
        name_machines(documents)
        made = of_runs(config, of_cells, read)
        files.write_json(tables.with_name("results.json"), results_of(made))
        found |= made.found
        # Records lack leading blanks; without the tab the header is shifted by a column.
        printed = (one["environment"].get("topology") or "" for one in documents)
        text = next(filter(None, map(str.strip, printed)), "")
        files.write_text(tables / "topology.txt", f"\t{text}\n" if text else "")
    if techniques := read["convergence"]:
        margin = config["convergence"]["accuracy_margin"]
        found["convergence"] = accuracy.convergence(techniques)
        found["remedies"] = accuracy.remedies(found["convergence"], margin)
    if trainings := read["full_trainings"]:
        name_machines(trainings)
        target = config["time_to_accuracy"]["accuracy"]
        found["trained_to_accuracy"] = accuracy.trained_to_accuracy(trainings, target)
    kinds = {name: read[own.records] for name, own in schema.TABLES.items() if own.records in OWN}
    found |= {name: getattr(ranks_int8, name)(own) for name, own in kinds.items() if own}
    schema.write(found, tables, study)
    written = [schema.TABLES[name].path(tables, study) for name in found]
    answers = evaluate(schema.read_study(study, written), learns(config))
    files.write_json(tables / "claims.json", asdict(answers))
