"""Read submitted tables of training times: a row of printed numbers for each configuration."""

import re
from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import pandas as pd

from grader.tables import Record, Tables, read
from grader.words import PATTERNS, Figure, figure, head, named
from scaling.config.stored import read_config
from scaling.core import files
from scaling.core.errors import UserError

CIFAR10_TRAIN_IMAGES = 50_000
MOST_STUDIES = 100
FIGURES = ["speedup", "efficiency", "compute", "communication", "bandwidth"]
TIMES = ["epoch", "training", "loading", "least", "most"]
VALUES = [*TIMES, "rate", "bytes", "iterations", "elsewhere", "percent", "of_throughput", *FIGURES]
FORMULAS = read_config(Path(__file__).with_name("formulas.yaml"))
TITLES = {name: title for name, (title, *_) in FORMULAS["quantities"].items()}
QUESTIONS = {name: question for name, (_, question, *_) in FORMULAS["quantities"].items()}
CELL = ["strategy", "gpus", "batch_size"]
GROUPS = ["study", "hardware", "model", "recipe", "global"]
"""Rows that differ in one of these columns belong to different studies."""


@dataclass(frozen=True)
class Study:
    """A submitted study. `rows` has a `Figure` or None for each configuration and quantity.

    `about` is the study's section in studies.yaml. `notes` list what was not read. `parameters` is
    the range of parameter counts that round to the printed count, if any. `global_batch` is true if
    printed batch sizes are of all GPUs together, `batch_stated` if a header says "per GPU".
    """

    name: str
    rows: pd.DataFrame
    about: dict[str, Any]
    notes: list[str]
    model: str
    parameters: tuple[float, float] | None
    global_batch: bool
    batch_stated: bool

    @property
    def strategies(self) -> list[str]:
        """Return the names of the strategies; [""] if none has a name."""
        names = sorted(self.rows["strategy"].unique())
        return [*filter(None, names)] or names


def read_folder(path: Path) -> list[Study]:
    """Return the studies of a file or folder (timings.csv, studies.yaml); UserError if invalid."""
    if not path.is_dir():
        return read_file(path)
    if not (path / "timings.csv").exists():
        raise UserError(f"{path}: there is no table in it; save one as CSV, Markdown or xlsx")
    studies, yaml = read_file(path / "timings.csv"), path / "studies.yaml"
    entries = read_config(files.regular(yaml, within=path)) if yaml.exists() else {}
    if not all(isinstance(entry, dict) for entry in entries.values()):
        raise UserError(f"{yaml}: write `title: text` and the like below each study's name")
    return [replace(one, about=entries.get(one.name, one.about)) for one in studies]


def read_file(path: Path) -> list[Study]:
    """Return the studies of a file, one for each combination of the columns `GROUPS`."""
    file = read(path)
    _complete(file)
    columns = [*GROUPS, "gpus", "batch_size", "epoch", "parameters"]
    frame = pd.DataFrame(file.records, columns=columns, dtype=object)
    groups = frame.groupby(GROUPS, sort=False)
    if len(groups) > MOST_STUDIES:
        raise UserError(f"{path}: there are more than {MOST_STUDIES} studies; split the file")
    stem = path.parent.name if path.stem == "timings" else path.stem
    heads, studies = [*file.heads, *map(head, file.text.splitlines())], list[Study]()
    for values, group in groups:
        of: dict[str, Any] = dict(zip(GROUPS, values, strict=True))
        varied = frame.loc[frame["study"] == of["study"], GROUPS].nunique() > 1
        name = "-".join(of[x] for x in GROUPS if of[x] and (x == "study" or varied[x])) or stem
        rows = _rows([file.records[i] for i in group.index], file.notes)
        others = frame.drop(group.index).query("gpus == 1").dropna(subset="epoch")
        times = others.drop_duplicates("batch_size").set_index("batch_size")["epoch"].to_dict()
        rows["elsewhere"] = [times.get(size) for size in rows["batch_size"]]
        studies.append(
            Study(
                re.sub(r"[^\w.-]+", "-", name).strip("-.") or "study",
                rows,
                {"hardware": of["hardware"]},
                file.notes,
                of["model"] or "not stated",
                _range(max(group["parameters"])),
                global_batch=bool(of["global"]),
                batch_stated=any(re.search("per|/|local", one.text) for one in heads if one.batch),
            )
        )
    return studies


def _complete(file: Tables) -> None:
    """Copy values stated once (such as the model) to all records; set the batch size per GPU."""
    for one in file.records:
        # Our tables name a configuration `plain/ddp`.
        recipe, _, strategy = str(one.get("recipe") or "").partition("/")
        text = (strategy or one["strategy"]).strip().lower()
        short = re.sub(r"\(.*\)|pytorch|torch|nn\.|\s", "", text)
        one |= {"strategy": named("strategies", short) or text, "recipe": recipe}
        one["global"] = "" if "batch_size" in one else "global-batch"
        if one["global"]:
            one["batch_size"] = max(1, round(one["global_batch"] / one["gpus"]))
    # The comma may have been a separator of fields.
    words = PATTERNS["stated"].search(file.text)
    size = re.sub(r" (?=\d)", ",", words[1] if words else "")
    size = re.sub(r"^(\d+),(?=\d+ ?[kKM]?$)(?!\d{3}$)", r"\1.", size)
    stated = {"strategy": named("strategies", file.text.lower(), within=True), "parameters": size}
    # What is stated once holds for the whole file.
    for name in (*GROUPS[:-1], "strategy", "parameters"):
        values = {str(one.get(name) or "") for one in file.records} - {""}
        only = min(values or {stated.get(name, "")}) if len(values) < 2 else ""
        for one in file.records:
            one[name] = one.get(name) or only


def _range(text: str) -> tuple[float, float] | None:
    """Return the lowest and highest number that round to the one in `text`; None without one."""
    if not (shown := figure(text, head("parameters"))):
        return None
    scale = 1e6 if shown.value < 1000 else 1.0  # `11.17` in millions
    around = shown.unit * scale / 2 if shown.unit * scale > 1 else 0.0
    return shown.value * scale - around, shown.value * scale + around


def _rows(records: list[Record], notes: list[str]) -> pd.DataFrame:
    """Return a table with a row for each configuration and one value for each quantity.

    A value is the median of runs or epochs. It is None, with a note in `notes`, if contradictory.
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
            for name in filter(values.get, VALUES):
                later = values[name][first["epochs"] :] or values[name]
                values[name] = [Figure(median(x for x, _ in later), max(x for _, x in later))]
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
