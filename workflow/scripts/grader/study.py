"""Read printed studies from files: a row of values per strategy, number of GPUs and batch size."""

import re
from collections import defaultdict
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import pandas as pd
from pydantic import Field

from grader.tables import KINDS, Record, Tables, read
from grader.words import STRATEGIES, Figure, count, figure, head, plain, strategy
from scaling.config.stored import read_config
from scaling.core import files
from scaling.core.errors import UserError
from scaling.core.section import Section

CIFAR10_TRAIN_IMAGES = 50_000
MOST_STUDIES = 100
NOT_STATED = "not stated"
TIMES = ["epoch", "training", "loading", "least", "most"]
TIMES += ["rate", "tokens", "peak", "bytes", "iterations"]
FIGURES = ["speedup", "efficiency", "compute", "communication", "bandwidth", "utilization"]
VALUES = [*TIMES, *FIGURES, "count"]
COLUMNS = ["strategy", "gpus", "batch_size", "status", *VALUES]
GROUPS = ["study", "hardware", "model", "recipe"]
"""Columns whose values separate the studies of a file."""
Peak = Annotated[float, Field(gt=0)]


class Description(Section):
    """An entry of studies.yaml: what is known of a study besides its tables.

    If `ring`, DataParallel sends the bytes of a ring; `peak` is GB/s, or GB/s by number of GPUs.
    """

    title: str = ""
    hardware: str = NOT_STATED
    units: str = NOT_STATED
    doubts: list[str] = Field(default_factory=list)
    ring: bool = False
    peak: Peak | dict[int, Peak] | None = None


@dataclass(frozen=True)
class Study:
    """One printed study; `rows` has a `Figure` or None for each configuration and quantity.

    `sweep` has more times on one GPU, `notes` say what was not read, `parameters` is a range. If
    `global_batch`, headers give the batch of all GPUs; if `measured`, a trace gave the time parts.
    """

    name: str
    rows: pd.DataFrame
    description: Description = field(default_factory=Description)
    sweep: dict[int, Figure] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
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
        return [one for one in names if one] if len(names) > 1 else names

    @property
    def of_lab(self) -> bool:
        """Return whether the model may be ResNet-18 for CIFAR-10 (11,173,962 parameters)."""
        size = self.parameters
        return (size is None or size[0] <= 11_173_962 <= size[1]) and "imagenet" not in self.model

    @property
    def lost(self) -> list[str]:
        return [note for note in self.notes if "left out" in note]


def read_folder(path: Path) -> list[Study]:
    """Return the studies of a file, or of a folder's timings.csv, batch_sweep.csv and studies.yaml.

    Raises UserError, with the file and line, if no row of the file can be read.
    """
    if path.is_file():
        return read_file(path)
    studies = {one.name: one for one in read_file(timings(path))}
    if (again := path / "batch_sweep.csv").exists():
        for one in read_file(again):
            if one.name not in studies:
                raise UserError(f"{again}: timings.csv has no study {one.name}; name one it has")
            rows = one.rows.query("gpus == 1")
            sweep = dict(zip(rows["batch_size"], rows["epoch"], strict=True))
            studies[one.name] = replace(studies[one.name], sweep=sweep)
    if (yaml := path / "studies.yaml").exists():
        for name, entry in read_config(files.regular(yaml, within=path)).items():
            description = Description.of(entry, f"description of {name} in {yaml}")
            if name in studies:
                studies[name] = replace(studies[name], description=description)
    return list(studies.values())


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
    file, lost = read(path), list[str]()
    groups = defaultdict[tuple[str, ...], list[Record]](list)
    for one in _completed(file):
        groups[tuple(str(one.get(name) or "") for name in GROUPS)].append(one)
    if len(groups) > MOST_STUDIES:
        raise UserError(f"{path}: there are more than {MOST_STUDIES} studies; split the file")
    # What only some tables name, as the network above them, holds for the others.
    varied = [len({group[i] for group in groups} - {""}) > 1 for i in range(len(GROUPS))]
    merged = defaultdict[tuple[str, ...], list[Record]](list)
    for group, each in groups.items():
        merged[tuple(x * v for x, v in zip(group, varied, strict=True))] += each
    heads = [*file.heads, head(file.text)]
    peaks = (re.search(r"([\d.]+) ?GB/s", one.text) for one in heads if one.field == "utilization")
    stem = path.parent.name if path.stem.lower() == "timings" else path.stem
    per_gpu = any(re.search("per|/|local", one.text) for one in heads if one.batch)
    traced = any(re.search("trace|profil|exposed|idle|messages", one.words) for one in heads)
    peak, studies = next((float(one[1]) for one in peaks if one), None), list[Study]()
    for group, each in merged.items():
        of = {
            name: ", ".join(sorted({str(x[name]) for x in each if x.get(name)})) for name in GROUPS
        }
        alone = of["study"] and [other[0] for other in merged].count(group[0]) == 1
        parts = [of["study"]] if alone else filter(None, group)
        name = re.sub(r"[^\w.-]+", "-", "-".join(parts) or stem).strip("-.") or "study"
        for part, rows in enumerate(_apart(each, lost), 1):
            studies.append(
                Study(
                    name + f"-{part}" * (part > 1),
                    rows,
                    Description(hardware=of["hardware"] or NOT_STATED, peak=peak),
                    model=of["model"] or NOT_STATED,
                    parameters=_parameters(each, file.text),
                    global_batch=all(one["global"] for one in each),
                    template=bool(of["study"]),
                    batch_stated=per_gpu,
                    measured=traced,
                )
            )
    skipped = [f"not read: {', '.join(dict.fromkeys(file.skipped))}"] if file.skipped else []
    notes = tuple(dict.fromkeys([*file.lost, *lost, *file.refused, *skipped]))
    return [replace(one, notes=notes) for one in studies]


def _completed(file: Tables) -> list[Record]:
    """Return the records of a file after adding strategy, recipe and batch size per GPU."""
    for one in file.records:
        text = plain(one["strategy"]).lower()
        alone = re.sub("|".join(STRATEGIES.values()) + r"|\(.*\)|pytorch|torch|nn\.|\s", "", text)
        one["strategy"] = text if alone else strategy(text)
    known = {one["strategy"] for one in file.records} - {""} or {strategy(file.text)}
    for one in file.records:
        words = str(one.get("recipe", ""))
        # A single statement holds for the whole file.
        only = next(iter(known)) if len(known) == 1 else ""
        one["strategy"] = strategy(words) or one["strategy"] or only
        if strategy(words):
            one["recipe"] = re.sub(r"(?i)\b\w*(?:ddp|fsdp|dp)\w*\b|[·/,]", "", words).strip()
        one["gpus"], one["global"] = count(str(one["gpus"])), "batch_size" not in one
        size = count(str(one.get("batch_size", one.get("global_batch")))) or 1
        one["batch_size"] = max(1, round(size / one["gpus"])) if one["global"] else size
    return file.records


def _parameters(records: list[Record], text: str) -> tuple[float, float] | None:
    """Return the range of numbers of parameters that round to the printed one; None if missing."""
    words = re.search(r"([\d.,]*\d ?[kKM]?) (?:million )?(?:trainable )?param", text)
    named = next((str(one["parameters"]) for one in records if one.get("parameters")), "")
    shown = figure(named or (words[1] if words else ""), head("parameters"))
    around = shown.unit / 2 if shown and shown.unit > 1 else 0.0
    return (shown.value - around, shown.value + around) if shown else None


def _apart(records: list[Record], lost: list[str]) -> list[pd.DataFrame]:
    """Return the rows of a study, in several parts where its tables contradict each other.

    A time from several runs, or from epochs after the first, is their median.
    """
    tables, parts = defaultdict[Any, list[Record]](list), [dict[Any, Record]()]
    for one in records:
        tables[("run", *_key(one)) if "run" in one else one["table"]].append(one)
    for table in tables.values():
        rows = [_median(table)] if "run" in table[0] else table
        parts += [{}] * all(any(_against(part, one) for one in rows) for part in parts)
        part = next(each for each in parts if not any(_against(each, one) for one in rows))
        for one in rows:
            if _against(part, one):
                cell = f"line {one['line']}: a second row of {one['gpus']} x {one['batch_size']}"
                lost.append(f"{cell}; the row is left out: a column `run` says which is which")
            else:
                part[_key(one)] = {**one, **part.get(_key(one), {}), **_values(part, one)}
    return [_rows(part) for part in parts]


def _median(runs: list[Record]) -> Record:
    """Return one record for several runs or epochs of a configuration, with the median times."""
    record = {**runs[0], "count": str(len(runs))}
    for name in TIMES:
        values = [one[name] for one in runs if one.get(name)]
        values = values[1:] if len(values) > 1 and runs[0].get("epochs") else values
        if values:
            middle = median(one.value for one in values)
            record[name] = Figure(middle, max(one.unit for one in values))
    return record


def _key(one: Record) -> tuple[str, int, int]:
    return one["strategy"], one["gpus"], one["batch_size"]


def _values(part: dict[Any, Record], one: Record) -> Record:
    """Return a record's values; a second time, of Question 1, is the time without loading."""
    values = {name: one[name] for name in VALUES if one.get(name)}
    if one.get("question_1") and "epoch" in part.get(_key(one), {}) and "epoch" in values:
        values["training"] = values.pop("epoch")
    return values


def _against(part: dict[Any, Record], one: Record) -> bool:
    """Return whether `part` has another value for a quantity of the same configuration."""
    there = part.get(_key(one), {})
    return any(there.get(name, value) != value for name, value in _values(part, one).items())


def _rows(part: dict[Any, Record]) -> pd.DataFrame:
    rows = [{name: one.get(name) for name in [*COLUMNS, "per_gpu"]} for one in part.values()]
    for row in rows:
        if row["rate"] and row["per_gpu"]:
            row["rate"] = Figure(*(x * row["gpus"] for x in row["rate"]))
        row["rate"] = row["rate"] or (None if row["epoch"] else row["tokens"])
        row["status"] = row["status"] or "ok"
    table = pd.DataFrame(rows, columns=COLUMNS, dtype=object)
    return table.astype({"gpus": int, "batch_size": int})
