"""Studies as someone printed them: the cells of a file, by study, hardware and strategy."""

import re
from collections import defaultdict
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Annotated, Any, Literal

import pandas as pd
from pydantic import Field

from grader.tables import KINDS, Record, Tables, read
from grader.words import Figure, count, figure, head, strategy, strategy_name
from scaling.config.stored import read_config
from scaling.core import files
from scaling.core.errors import UserError
from scaling.core.section import Section

CIFAR10_TRAIN_IMAGES = 50_000
MOST_STUDIES = 100
NOT_STATED = "not stated"
TIMES = ["epoch", "training", "loading", "least", "most"]
TIMES += ["rate", "tokens", "peak", "bytes", "iterations"]
FIGURES = ["speedup", "efficiency", "compute", "communication", "compute_percent"]
FIGURES += ["communication_percent", "bandwidth", "utilization"]
VALUES = [*TIMES, *FIGURES, "count"]
COLUMNS = ["strategy", "gpus", "batch_size", "status", *VALUES]
GROUPS = ["study", "hardware", "model", "recipe"]
"""What makes rows of a file those of another study."""
Times = Literal["whole", "without_loading"]
Peak = Annotated[float, Field(gt=0)]


class Definitions(Section):
    """The definitions that a document states, by their names in formulas.yaml."""

    speedup: Times | None = None
    compute_seconds: Times | None = None
    communication_seconds: Times | None = None
    bandwidth_gb_per_s: Literal["strategy", "ring"] | None = None
    utilization_percent: Peak | dict[int, Peak] | None = None


class Description(Section):
    """What the tables of a study cannot say: in words, and the definitions it states."""

    title: str = ""
    hardware: str = NOT_STATED
    units: str = NOT_STATED
    doubts: list[str] = Field(default_factory=list)
    definitions: Definitions = Definitions()


@dataclass(frozen=True)
class Study:
    """One study as it was printed: `rows` have a figure of each kind for each cell, or None.

    `sweep` has more times on one GPU, `notes` say what was not read, `parameters` are between two
    numbers. A `global_batch` is that of all GPUs by the header, `measured` are parts by a trace.
    """

    name: str
    rows: pd.DataFrame
    description: Description = field(default_factory=Description)
    sweep: dict[int, Figure] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    model: str = NOT_STATED
    parameters: tuple[float, float] | None = None
    global_batch: bool = False
    batch_said: bool = True
    measured: bool = False
    template: bool = False
    peak: float | None = None

    @property
    def strategies(self) -> list[str]:
        """The strategies of the cells; of one GPU alone only where there are no others."""
        named = sorted(self.rows["strategy"].unique())
        return [one for one in named if one] if len(named) > 1 else named

    @property
    def of_lab(self) -> bool:
        """Whether the network may be the lab's, and the times are seconds."""
        size = self.parameters
        return (size is None or size[0] <= 11_173_962 <= size[1]) and "imagenet" not in self.model

    @property
    def lost(self) -> list[str]:
        return [note for note in self.notes if "left out" in note]


def read_folder(path: Path) -> list[Study]:
    """Return the studies in a folder, of timings.csv and what lies by it, or in one file.

    Raises UserError, naming file and line, where no row of it can be read.
    """
    folder = None if path.is_file() else path
    path = timings(folder) if folder else path
    found = read_file(path)
    names = [one.name for one in found]
    sweeps, described = dict[str, dict[int, Figure]](), dict[str, Description]()
    if folder and (again := folder / "batch_sweep.csv").exists():
        for one in read_file(again):
            if one.name not in names:
                raise UserError(f"{again}: {path.name} has no study {one.name}; name one it has")
            rows = one.rows.query("gpus == 1")
            sweeps[one.name] = dict(zip(rows["batch_size"], rows["epoch"], strict=True))
    if folder and (yaml := folder / "studies.yaml").exists():
        for name, entry in read_config(files.regular(yaml, within=folder)).items():
            told = f"{yaml} does not describe studies: {name}"
            described[str(name)] = Description.of(entry, told)
    return [
        replace(one, sweep=sweeps.get(name, {}), description=described.get(name, one.description))
        for name, one in zip(names, found, strict=True)
    ]


def timings(folder: Path) -> Path:
    """The file of a folder's times: timings.csv, or a table of another kind of that name."""
    names = (path for path in tables(folder) if path.stem.lower() == "timings")
    return next(names, folder / "timings.csv")


def tables(folder: Path) -> list[Path]:
    """The files of a folder that may hold a table."""
    return [one for one in sorted(folder.iterdir()) if one.suffix.lower() in KINDS and wanted(one)]


def wanted(path: Path) -> bool:
    """Whether a path is none of those that file managers and editors leave."""
    return not path.name.startswith((".", "~$", "__MACOSX"))


def read_file(path: Path) -> list[Study]:
    """Return the studies of a file: one for each study, hardware, model and recipe it names."""
    found, lost = read(path), list[str]()
    text, heads, records = found.text, found.heads, _cells(found)
    stem = path.parent.name if path.stem.lower() == "timings" else path.stem
    groups = defaultdict[tuple[str, ...], list[Record]](list)
    for one in records:
        groups[tuple(str(one.get(name) or "") for name in GROUPS)].append(one)
    if len(groups) > MOST_STUDIES:
        raise UserError(f"{path}: there are more than {MOST_STUDIES} studies; split the file")
    # What only some tables name, as the network above them, holds for the others.
    varied = [len({group[i] for group in groups} - {""}) > 1 for i in range(len(GROUPS))]
    merged = defaultdict[tuple[str, ...], list[Record]](list)
    for group, each in groups.items():
        merged[tuple(x * v for x, v in zip(group, varied, strict=True))] += each
    peaks = (re.search(r"([\d.]+) ?GB/s", one.text) for one in heads if one.field == "utilization")
    peak = next((float(one[1]) for one in peaks if one), None)
    per_gpu = any(re.search("per|/|local", one.text) for one in heads if one.batch)
    traced = any(re.search("trace|profil|exposed|idle|messages", one.words) for one in heads)
    studies = list[Study]()
    for group, each in merged.items():
        of = {name: _named(each, name) for name in GROUPS}
        alone = of["study"] and sum(_named(x, "study") == of["study"] for x in merged.values()) == 1
        name = of["study"] if alone else "-".join(filter(None, group))
        name = re.sub(r"[^\w.-]+", "-", name or stem).strip("-.") or "study"
        for part, rows in enumerate(_apart(each, lost), 1):
            studies.append(
                Study(
                    name + f"-{part}" * (part > 1),
                    rows,
                    Description(hardware=of["hardware"] or NOT_STATED),
                    model=of["model"] or NOT_STATED,
                    parameters=_parameters(each, text),
                    global_batch=all(one["global"] for one in each),
                    batch_said=per_gpu,
                    measured=traced,
                    template=bool(of["study"]) and "epoch_seconds" in {one.text for one in heads},
                    peak=peak,
                )
            )
    passed = [f"not read: {', '.join(dict.fromkeys(found.passed))}"] if found.passed else []
    notes = tuple(dict.fromkeys([*found.lost, *lost, *found.refused, *passed]))
    return [replace(one, notes=notes) for one in studies]


def _cells(found: Tables) -> list[Record]:
    """The records of a file with their strategy, recipe and batch size per GPU."""
    known = {strategy_name(one["strategy"]) for one in found.records} - {""}
    known = known or {strategy(found.text)}
    for one in found.records:
        words = str(one.get("recipe", ""))
        # A single statement holds for the whole file.
        only = next(iter(known)) if len(known) == 1 else ""
        one["strategy"] = strategy(words) or strategy_name(one["strategy"]) or only
        if strategy(words):
            one["recipe"] = re.sub(r"(?i)\b\w*(?:ddp|fsdp|dp)\w*\b|[·/,]", "", words).strip()
        one["gpus"], one["global"] = count(str(one["gpus"])), "batch_size" not in one
        size = count(str(one.get("batch_size", one.get("global_batch")))) or 1
        one["batch_size"] = max(1, round(size / one["gpus"])) if one["global"] else size
    return found.records


def _named(records: list[Record], name: str) -> str:
    """What the records name, as text; "" for nothing."""
    return ", ".join(sorted({str(one[name]) for one in records if one.get(name)}))


def _parameters(records: list[Record], text: str) -> tuple[float, float] | None:
    """The number of parameters, between two ends where it is rounded."""
    said = re.search(r"([\d.,]*\d ?[kKM]?) (?:million )?(?:trainable )?param", text)
    named = next((str(one["parameters"]) for one in records if one.get("parameters")), "")
    shown = figure(named or (said[1] if said else ""), head("parameters"))
    around = shown.unit / 2 if shown and shown.unit > 1 else 0.0
    return (shown.value - around, shown.value + around) if shown else None


def _apart(records: list[Record], lost: list[str]) -> list[pd.DataFrame]:
    """Return the rows of a study, and of another where a table of the file contradicts them.

    Of runs, or epochs after the first, a time is the median.
    """
    parts, runs = [dict[Any, Record]()], defaultdict[Any, list[Record]](list)
    tables = defaultdict[int, list[Record]](list)
    for one in records:
        if "run" in one:
            runs[_key(one)].append(one)
        else:
            tables[one["table"]].append(one)
    for table in tables.values():
        parts += [{}] * all(any(_against(part, one) for one in table) for part in parts)
        part = next(each for each in parts if not any(_against(each, one) for one in table))
        for one in table:
            if _against(part, one):
                cell = f"line {one['line']}: a second row of {one['gpus']} x {one['batch_size']}"
                lost.append(f"{cell}; the row is left out: a column `run` says which is which")
            else:
                part[_key(one)] = {**one, **part.get(_key(one), {}), **_values(part, one)}
    for key, each in runs.items():
        parts[0][key] = {**each[0], "count": str(len(each))}
        for name in TIMES:
            values = [one[name] for one in each if one.get(name)]
            values = values[1:] if len(values) > 1 and each[0].get("epochs") else values
            if values:
                middle = median(x.value for x in values)
                parts[0][key][name] = Figure(middle, max(x.unit for x in values))
    return [_rows(part) for part in parts]


def _key(one: Record) -> tuple[str, int, int]:
    return one["strategy"], one["gpus"], one["batch_size"]


def _values(part: dict[Any, Record], one: Record) -> Record:
    """The figures of a record; a second time on one GPU, of Question 1, is without loading."""
    values = {name: one[name] for name in VALUES if one.get(name)}
    if one.get("question_1") and "epoch" in part.get(_key(one), {}) and "epoch" in values:
        values["training"] = values.pop("epoch")
    return values


def _against(part: dict[Any, Record], one: Record) -> bool:
    """Whether a part has another figure for the cell."""
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
