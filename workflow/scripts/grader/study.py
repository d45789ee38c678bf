"""Read printed studies from files: a row of values per strategy, number of GPUs and batch size."""

import re
from collections import defaultdict
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

import pandas as pd
from pydantic import Field

from grader.tables import TEMPLATE, Record, Tables, read
from grader.words import WORDS, Figure, figure, head, named
from scaling.config.stored import read_config
from scaling.core import files
from scaling.core.errors import UserError
from scaling.core.section import Section

CIFAR10_TRAIN_IMAGES = 50_000
MOST_STUDIES = 100
KINDS = {".csv", ".tsv", ".txt", ".md", ".markdown", ".xlsx"}
"""Endings of files that may hold a table."""
NOT_STATED = "not stated"
TIMES = ["epoch", "training", "loading", "least", "most", "rate", "bytes", "iterations"]
TIMES += ["elsewhere"]
FIGURES = ["speedup", "efficiency", "compute", "communication", "bandwidth"]
VALUES = [*TIMES, *FIGURES]
FORMULAS = read_config(Path(__file__).with_name("formulas.yaml"))
CELL = ["strategy", "gpus", "batch_size"]
GROUPS = ["study", "hardware", "model", "recipe"]
"""Columns whose values separate the studies of a file."""


class Description(Section):
    """An entry of studies.yaml: what is known of a study besides its tables.

    If `ring`, DataParallel sends the bytes of a ring.
    """

    title: str = ""
    hardware: str = NOT_STATED
    units: str = NOT_STATED
    doubts: list[str] = Field(default_factory=list)
    ring: bool = False


@dataclass(frozen=True)
class Study:
    """A study as printed; `rows` has a `Figure` or None per configuration and quantity.

    `notes`: what was not read; `parameters`: low, high.
    `global_batch`: headers give the batch of all GPUs; `measured`: a trace gave time parts.
    """

    name: str
    rows: pd.DataFrame
    description: Description = field(default_factory=Description)
    notes: list[str] = field(default_factory=list)
    model: str = NOT_STATED
    parameters: tuple[float, float] | None = None
    global_batch: bool = False
    batch_stated: bool = True
    measured: bool = False
    template: bool = False

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
    studies, again, yaml = read_file(timings(path)), path / "batch_sweep.csv", path / "studies.yaml"
    if again.exists():
        raise UserError(f"{again} is not read; {TEMPLATE}, in timings.csv for its times too")
    entries = read_config(files.regular(yaml, within=path)) if yaml.exists() else {}
    for name, entry in entries.items():
        of = Description.of(entry, f"description of {name} in {yaml}")
        studies = [replace(x, description=of) if x.name == name else x for x in studies]
    return studies


def timings(folder: Path) -> Path:
    """Return the path of the folder's table named `timings`, by default timings.csv."""
    names = (path for path in tables(folder) if path.stem.lower() == "timings")
    return next(names, folder / "timings.csv")


def tables(folder: Path) -> list[Path]:
    """Return the files in a folder that may contain a table, sorted."""
    return [one for one in sorted(folder.iterdir()) if one.suffix.lower() in KINDS and wanted(one)]


def wanted(path: Path) -> bool:
    """Return whether a path is not a hidden or temporary file of a file manager or an editor."""
    return not path.name.startswith((".", "~$", "__MACOSX"))


def read_file(path: Path) -> list[Study]:
    """Return the studies of a file, one per combination of study, hardware, model and recipe."""
    file = read(path)
    _complete(file)
    frame = pd.DataFrame(file.records, columns=GROUPS, dtype=object).fillna("")
    # What only some tables name, as the network above them, holds for the others.
    stated = frame.replace("", None)
    within = stated.groupby(frame["study"]).nunique().max()
    varied = [name for name in GROUPS[1:] if within[name] > 1]
    groups = frame.groupby(["study", *varied], sort=False)
    if len(groups) > MOST_STUDIES:
        raise UserError(f"{path}: there are more than {MOST_STUDIES} studies; split the file")
    heads = [*file.heads, head(file.text)]
    per_gpu = any(re.search("per|/|local", one.text) for one in heads if one.batch)
    traced = any(re.search("trace|profil|exposed|idle|messages", one.words) for one in heads)
    stem = path.parent.name if path.stem.lower() == "timings" else path.stem
    studies = list[Study]()
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
                batch_stated=per_gpu,
                measured=traced,
                template=bool(of["study"]),
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
    known = "|".join(WORDS["strategies"].values())
    for one in file.records:
        text = one["strategy"].lower()
        alone = re.sub(known + r"|\(.*\)|pytorch|torch|nn\.|\s", "", text)
        one["strategy"] = text if alone else named("strategies", text)
    strategies = {one["strategy"] for one in file.records} - {""}
    strategies = strategies or {named("strategies", file.text)}
    # A single statement holds for the whole file.
    only = min(strategies) if len(strategies) == 1 else ""
    for one in file.records:
        words, _, strategy = str(one.get("recipe") or "").partition("/")
        stated = named("strategies", words) or strategy.strip().lower()
        one["strategy"] = stated or one["strategy"] or only
        if stated:
            words = re.sub(r"(?i)\b\w*(?:ddp|fsdp|dp)\w*\b|[·,]", "", words)
        one["recipe"] = words.strip()
        one["global"] = "batch_size" not in one
        if one["global"]:
            one["batch_size"] = max(1, round(one["global_batch"] / one["gpus"]))


def _parameters(records: list[Record], text: str) -> tuple[float, float] | None:
    """Return the range of numbers of parameters that round to the printed one; None if missing.

    The name of a model of formulas.yaml states its number.
    """
    # The comma may have been a separator of fields.
    words = re.search(
        r"((?:\d{1,3}(?:[ ,]\d{3})+|[\d.]*\d) ?[kKM]?) (?:million )?(?:trainable )?param", text
    )
    stated = next((str(one["parameters"]) for one in records if one.get("parameters")), "")
    number = re.sub(r" (?=\d)", ",", words[1]) if words else ""
    shown = figure(stated or number, head("parameters"))
    known = {FORMULAS["parameters"].get(one.get("model")) for one in records} - {None}
    if not shown and len(known) == 1:
        shown = Figure(known.pop(), 1.0)
    around = shown.unit / 2 if shown and shown.unit > 1 else 0.0
    return (shown.value - around, shown.value + around) if shown else None


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
        if "run" in first:
            later = {name: every[first["epochs"] :] or every for name, every in values.items()}
            values = {name: [_median(every)] for name, every in later.items() if every}
        runs = len(each) if "run" in first else first.get("count")
        status = next((one["status"] for one in each if one["status"]), "ok")
        row: Record = {"status": status, "count": str(runs or "") or None}
        row |= {name: every[0] for name, every in values.items() if len(set(every)) == 1}
        rows.append(dict(zip(CELL, cell, strict=True)) | row)
        if twice := [name for name, every in values.items() if len(set(every)) > 1]:
            place = f"{' and '.join(twice)} of {cell[1]} x {cell[2]}; both are left out"
            line = f"line {each[-1]['line']}"
            notes.append(f"{line}: another {place}: a column `run` tells them apart")
    table = pd.DataFrame(rows, columns=[*CELL, "status", "count", *VALUES], dtype=object)
    table = table.astype({"gpus": int, "batch_size": int})
    return table.where(table.notna(), None)


def _median(figures: list[Figure]) -> Figure:
    return Figure(median(one.value for one in figures), max(one.unit for one in figures))
