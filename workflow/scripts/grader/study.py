"""Published studies: the times and the derived figures that someone printed, as data."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import pandas as pd
from pydantic import Field, ValidationError

from grader.fields import NOT_STATED, Timing, grids
from grader.tables import FIGURES, IDENTITY, Table, Texts, said
from scaling.config.stored import read_config
from scaling.core import files
from scaling.core.errors import UserError
from scaling.core.section import Section
from scaling.tables.timing import TIMED

CIFAR10_TRAIN_IMAGES = 50_000
BYTES_PER_PARAMETER = 4
"""Gradients are taken as float32, which every study of this lab used."""
KINDS = [".csv", ".tsv", ".txt", ".md", ".markdown", ".xlsx"]
"""Endings of files that may hold a table."""
MOST_STUDIES = 100
PRINTED = {name.removeprefix("printed_"): name for name in FIGURES if "printed_" in name}
"""Every derived figure a document may print, and its column."""
TIMES = ["epoch_seconds", "epoch_seconds_without_loading", "epoch_seconds_min", "epoch_seconds_max"]
NEEDED = {"GPUs": {"gpus"}, "batch size": {"batch_size"}, "time or speedup": {*FIGURES, "status"}}
KEY = ["strategy", "gpus", "batch_size"]
OURS = {*Timing.model_fields} - {"count", "epoch_seconds_min", "epoch_seconds_max"}
"""The columns of timings.csv: a table that begins with all of them is not interpreted."""
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
    hardware: str = "not stated"
    units: str = "not stated"
    doubts: list[str] = Field(default_factory=list)
    definitions: Definitions = Definitions()


@dataclass(frozen=True)
class PublishedStudy:
    """One study as it was printed: `rows` as `Timing` has them, with the digits printed.

    `sweep` has more single-GPU times, which may repeat a cell. `reading` says which words of a
    table were taken for what, "" for one of our own columns.
    """

    name: str
    description: Description
    rows: pd.DataFrame
    sweep: pd.DataFrame
    reading: str = ""

    @property
    def strategies(self) -> list[str]:
        return sorted(self.rows["strategy"].unique())

    @property
    def parameters(self) -> int | None:
        """Parameters of the model, None when the study does not say."""
        stated = self.rows["parameters"].dropna()
        return int(stated.iloc[0]) if len(stated) else None


def read_folder(path: Path, train_images: int = CIFAR10_TRAIN_IMAGES) -> list[PublishedStudy]:
    """Return the studies in a folder, of timings.csv and what lies by it, or in one file.

    Raises UserError, naming file, line and column, for what is missing or cannot be.
    """
    folder = None if path.is_file() else path
    path = timings(folder) if folder else path
    name = re.sub(r"[^\w.-]+", "-", path.parent.name if folder else path.stem).strip("-.")
    found, reading = _timings(path, name or "study", train_images)
    for study, rows in found.items():
        _check(path, study, rows)
    sweeps, descriptions = dict[str, pd.DataFrame](), dict[str, Description]()
    if folder and (again := folder / "batch_sweep.csv").exists():
        sweeps, _ = _timings(again, name, train_images)
        if unknown := ", ".join(sweeps.keys() - found.keys()):
            raise UserError(f"{again}: {path.name} has no study {unknown}; name one it has")
    if folder and (described := folder / "studies.yaml").exists():
        for study, entry in read_config(files.regular(described, within=described.parent)).items():
            told = f"{described} does not describe studies: {study}"
            descriptions[str(study)] = Description.of(entry, told)
    return [
        PublishedStudy(
            study,
            descriptions.get(study, Description(units=reading or "not stated")),
            rows.fillna({"status": "ok"}),
            sweeps.get(study, rows[:0]).query("gpus == 1"),
            reading,
        )
        for study, rows in found.items()
    ]


def timings(folder: Path) -> Path:
    """The file of a folder's times: timings.csv, or a table of another kind of that name."""
    names = (path for path in tables(folder) if path.stem.lower() == "timings")
    return next(names, folder / "timings.csv")


def tables(folder: Path) -> list[Path]:
    """The files of a folder that may hold a table."""
    there = sorted(folder.iterdir()) if folder.is_dir() else []
    return [path for path in there if path.suffix.lower() in KINDS and wanted(path)]


def wanted(path: Path) -> bool:
    """Whether a person made a file or folder, and not a file manager or an open editor."""
    return not path.name.startswith((".", "~$", "__MACOSX"))


def _check(path: Path, study: str, rows: pd.DataFrame) -> None:
    """Refuse what no field shows alone: a cell twice, a missing time, two models."""
    for row in rows[rows.duplicated(KEY)].itertuples():
        raise UserError(
            f"{path}, line {row.line}: {study} has {row.strategy}, {row.gpus} GPUs, batch "
            f"{row.batch_size} a second time; keep one".replace(f"{NOT_STATED}, ", "")
        )
    timed, times = rows["status"].isin(TIMED), rows["epoch_seconds"].notna()
    # A study may print no time at all.
    figures = rows[[TIMES[1], *PRINTED.values()]].notna().any(axis=1) & (not times.any())
    for row in rows[timed & ~times & ~figures].itertuples():
        where = f"{path}, line {row.line}, column {TIMES[0]}"
        raise UserError(f"{where}: status {row.status} needs a time; write it")
    if rows["parameters"].nunique() > 1:
        raise UserError(f"{path}: {study} has two numbers of parameters; give each model a study")


def _timings(path: Path, name: str, images: int) -> tuple[dict[str, pd.DataFrame], str]:
    """Return the rows of each study in the file at `path`, and in words how they were read.

    `name` is that of a study that states none; the words are empty for exactly our columns.
    """
    found, passed = dict[str, list[Texts]](), list[str]()
    sources = dict[str, tuple[str, str]]()
    for table in (Table(path, grid, images) for grid in grids(path)):
        texts, parts = table.rows(), dict[str, list[Texts]]()
        known = {field for row in texts for field in row} | {*table.keys}
        if lacks := [words for words, fields in NEEDED.items() if not fields & known]:
            there = ", ".join(f"`{one.text[:40]}`" for one in table.labels[:12] if one.text)
            passed.append(f"{table.where}: there is no column of {', '.join(lacks)} among {there}")
            continue
        passed += [f"`{text}`" for text in table.passed]
        sources = table.sources() | sources
        for row in texts:
            parts.setdefault(row.setdefault("study", name), []).append(row)
        for study, rows in parts.items():
            _add(found, study, rows)
        if len(found) > MOST_STUDIES:
            raise UserError(f"{path}: there are more than {MOST_STUDIES} studies; hand in fewer")
    if not found:
        why = f"{passed[0]}; add what is missing" if passed else f"{path} has no row of a table"
        raise UserError(why)
    heads = {field: head for field, (head, _) in sources.items()}
    made = {
        study: pd.DataFrame([_checked(path, row, heads) for row in rows]).assign(study=study)
        for study, rows in found.items()
    }
    ours = {head.lower() for head in heads.values()} >= OURS
    return made, "" if ours else _in_words(sources, passed)


def _add(found: dict[str, list[Texts]], study: str, rows: list[Texts]) -> None:
    """Add a table's rows to a study, or to a new study if they contradict it."""

    def key(row: Texts) -> tuple[str, ...]:
        return tuple(row.get(field, "") for field in KEY)

    for name in [study, *(f"{study}-{number}" for number in range(2, MOST_STUDIES + 2))]:
        known = {key(row): row for row in found.get(name, [])}
        pairs = [(row, known.get(key(row), row)) for row in rows]
        if all(a[f] == b[f] for a, b in pairs for f in a.keys() & b.keys() & {*FIGURES}):
            break
    for row, other in pairs:
        if other is row:
            found.setdefault(name, []).append(row)
        else:
            other |= row | {"line": other["line"]}


def _checked(path: Path, row: Texts, heads: dict[str, str]) -> dict[str, Any]:
    """Return the fields of a row by `Timing`, and its `line`."""
    try:
        return {"line": int(row["line"]), **Timing.model_validate(row).model_dump()}
    except ValidationError as error:
        wrong = error.errors()[0]
        column = str(wrong["loc"][0])
        where = f"{path}, line {row['line']}"
        if column not in row:
            raise UserError(f"{where}: there is no {said(column)}; write it") from error
        head = heads.get(column, column)
        raise UserError(f"{where}, column {head}: {row[column]!r}: {wrong['msg']}") from error


def _in_words(sources: dict[str, tuple[str, str]], passed: list[str]) -> str:
    """Return in words how headers were understood, what is missing and what was ignored."""
    known = [field for field in [*IDENTITY, *FIGURES] if field in sources]
    parts = ["{} = `{}`{}".format(said(field), *sources[field]) for field in known]
    lacks = ", ".join(name for name in ("strategy", "model") if name not in sources)
    parts += [f"not stated: {lacks}"] if lacks else []
    parts += [f"not read: {', '.join(dict.fromkeys(passed))}"] if passed else []
    return "; ".join(parts)
