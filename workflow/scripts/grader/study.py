"""Read printed studies from files: a row of values per strategy, number of GPUs and batch size."""

import re
from collections import defaultdict
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

import pandas as pd
from pydantic import Field

from grader.tables import Record, Tables, read
from grader.words import Figure, figure, head, named
from scaling.config.stored import read_config
from scaling.core import files
from scaling.core.errors import UserError
from scaling.core.section import Section

CIFAR10_TRAIN_IMAGES = 50_000
MOST_STUDIES = 100
NOT_STATED = "not stated"
FIGURES = ["speedup", "efficiency", "compute", "communication", "bandwidth"]
VALUES = ["epoch", "training", "loading", "least", "most", "rate", "bytes", "iterations"]
VALUES += ["elsewhere", *FIGURES]
FORMULAS = read_config(Path(__file__).with_name("formulas.yaml"))
CELL = ["strategy", "gpus", "batch_size"]
GROUPS = ["study", "hardware", "model", "recipe"]
"""Columns whose values separate the studies of a file."""


class Description(Section):
    """An entry of studies.yaml: what is known of a study besides its tables."""

    title: str = ""
    hardware: str = NOT_STATED
    units: str = NOT_STATED
    doubts: list[str] = Field(default_factory=list)


@dataclass(frozen=True)
class Study:
    """A study as printed; `rows` has a `Figure` or None per configuration and quantity.

    `notes` say what was not read. `parameters` are the lowest and highest number that round to the
    printed one. `global_batch`: batch sizes are of all GPUs; `batch_stated`: headers say of which.
    """

    name: str
    rows: pd.DataFrame
    description: Description = field(default_factory=Description)
    notes: list[str] = field(default_factory=list)
    model: str = NOT_STATED
    parameters: tuple[float, float] | None = None
    global_batch: bool = False
    batch_stated: bool = True

    @property
    def strategies(self) -> list[str]:
        """Return the strategies of the rows; an empty name only if no other strategy is named."""
        names = sorted(self.rows["strategy"].unique())
        return [*filter(None, names)] or names

    @property
    def of_lab(self) -> bool:
        """Return whether the model may be ResNet-18 for CIFAR-10 (11,173,962 parameters)."""
        size = self.parameters
        return (size is None or size[0] <= 11_173_962 <= size[1]) and "imagenet" not in self.model


def read_folder(path: Path) -> list[Study]:
    """Return the studies of a file, or of a folder's timings.csv and studies.yaml.

    Raises UserError, with the file and line, if no row of the file can be read.
    """
    if path.is_file():
        return read_file(path)
    studies, yaml = read_file(path / "timings.csv"), path / "studies.yaml"
    entries = read_config(files.regular(yaml, within=path)) if yaml.exists() else {}
    for name, entry in entries.items():
        of = Description.of(entry, f"description of {name} in {yaml}")
        studies = [replace(x, description=of) if x.name == name else x for x in studies]
    return studies


def read_file(path: Path) -> list[Study]:
    """Return the studies of a file, one per combination of study, hardware, model and recipe."""
    file = read(path)
    _complete(file)
    frame = pd.DataFrame(file.records, columns=GROUPS, dtype=object).fillna("")
    # What only some tables name, as the network above them, holds for the others.
    within = frame.replace("", None).groupby(frame["study"]).nunique().max()
    varied = [name for name in GROUPS[1:] if within[name] > 1]
    groups = frame.groupby(["study", *varied], sort=False)
    if len(groups) > MOST_STUDIES:
        raise UserError(f"{path}: there are more than {MOST_STUDIES} studies; split the file")
    stem = path.parent.name if path.stem == "timings" else path.stem
    heads, studies = [*file.heads, head(file.text)], list[Study]()
    for _, group in groups:
        of = {name: ", ".join(sorted({*map(str, group[name])} - {""})) for name in GROUPS}
        name = "-".join(filter(None, (of[name] for name in ("study", *varied)))) or stem
        records = [file.records[i] for i in group.index]
        studies.append(
            Study(
                re.sub(r"[^\w.-]+", "-", name).strip("-.") or "study",
                _rows(records, file.notes),
                Description(hardware=of["hardware"] or NOT_STATED),
                model=of["model"] or NOT_STATED,
                parameters=_parameters(records, file.text),
                global_batch=all(one["global"] for one in records),
                batch_stated=any(re.search("per|/|local", one.text) for one in heads if one.batch),
                notes=file.notes,
            )
        )
    for one in studies:
        others = [each.rows.query("gpus == 1") for each in studies if each is not one]
        single = pd.concat([one.rows[:0], *others]).drop_duplicates("batch_size")
        times = single.set_index("batch_size")["epoch"].to_dict()
        one.rows["elsewhere"] = [times.get(size) for size in one.rows["batch_size"]]
    return studies


def _complete(file: Tables) -> None:
    """Set strategy, recipe, GPUs and batch size per GPU in the records of a file."""
    for one in file.records:
        # Our tables name a configuration `plain/ddp`.
        recipe, _, strategy = str(one.get("recipe") or "").partition("/")
        text = (strategy or one["strategy"]).strip().lower()
        short = re.sub(r"\(.*\)|pytorch|torch|nn\.|\s", "", text)
        one |= {"strategy": named("strategies", short) or text, "recipe": recipe}
        one["global"] = "batch_size" not in one
        if one["global"]:
            one["batch_size"] = max(1, round(one["global_batch"] / one["gpus"]))
    # A single statement holds for the whole file.
    stated = {one["strategy"] for one in file.records} - {""}
    stated = stated or {named("strategies", file.text.lower(), within=True)}
    for one in file.records if len(stated) == 1 else ():
        one["strategy"] = one["strategy"] or min(stated)


def _parameters(records: list[Record], text: str) -> tuple[float, float] | None:
    """Return the range of numbers of parameters that round to the printed one; None if missing."""
    # The comma may have been a separator of fields.
    words = re.search(
        r"((?:\d{1,3}(?:[ ,]\d{3})+|[\d.]*\d) ?[kKM]?) (?:million )?(?:trainable )?param", text
    )
    number = re.sub(r" (?=\d)", ",", words[1]) if words else ""
    stated = next((str(one["parameters"]) for one in records if one.get("parameters")), number)
    if not (shown := figure(stated, head("parameters"))):
        return None
    around = shown.unit / 2 if shown.unit > 1 else 0.0
    return shown.value - around, shown.value + around


def _rows(records: list[Record], notes: list[str]) -> pd.DataFrame:
    """Return a row for each configuration, with the median of several runs or later epochs.

    Of a quantity with two values none is used, as nothing says which of them holds.
    """
    cells = defaultdict[Any, list[Record]](list)
    for one in records:
        cells[tuple(one[name] for name in CELL)].append(one)
    rows = list[Record]()
    for cell, each in cells.items():
        first, values = each[0], {x: [one[x] for one in each if one.get(x)] for x in VALUES}
        # Only the template asks how often a time was measured.
        runs = first.get("count") or ("1" if first.get("study") else None)
        if "run" in first:
            later = {name: every[first["epochs"] :] or every for name, every in values.items()}
            values = {name: [_median(every)] for name, every in later.items() if every}
            runs = str(len(each))
        status = next((one["status"] for one in each if one["status"]), "ok")
        row: Record = {**dict(zip(CELL, cell, strict=True)), "status": status, "count": runs}
        rows.append(row | {x: every[0] for x, every in values.items() if len({*every}) == 1})
        if twice := [name for name, every in values.items() if len({*every}) > 1]:
            place = f"{' and '.join(twice)} of {cell[1]} x {cell[2]}; both are left out"
            line = f"line {each[-1]['line']}"
            notes.append(f"{line}: another {place}: a column `run` tells them apart")
    table = pd.DataFrame(rows, columns=[*CELL, "status", "count", *VALUES], dtype=object)
    table = table.astype({"gpus": int, "batch_size": int})
    return table.where(table.notna(), None)


def _median(figures: list[Figure]) -> Figure:
    return Figure(median(one.value for one in figures), max(one.unit for one in figures))
