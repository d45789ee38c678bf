"""Audit of submitted studies: as text, as an index with a page for each, as data."""

import re
import traceback
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pandas as pd
from pydantic import Field, NonNegativeFloat

from grader import judged as report
from grader import study as published
from grader.findings import COLUMNS, judge
from grader.judged import Judged
from grader.rows import NOT_STATED
from scaling.core import files
from scaling.core import numbers as fmt
from scaling.core.errors import UserError, printable
from scaling.core.section import Section
from scaling.report import page as html
from scaling.tables.schema import as_csv, rows_of


class Points(Section):
    """A grading scheme: `full` minus the cost of each finding, by its cause or severity."""

    full: NonNegativeFloat = 10
    error: NonNegativeFloat = 2
    warning: NonNegativeFloat = 0.5
    info: NonNegativeFloat = 0
    unreadable: NonNegativeFloat = 0
    causes: dict[str, NonNegativeFloat] = Field(default_factory=dict)

    def earned(self, judged: Judged) -> float:
        """Return the points of a study, at least 0."""
        found = judged.rows.drop_duplicates("number")
        pairs = zip(found["cause"], found["severity"], strict=True)
        return max(0.0, self.full - sum(self.causes.get(c, getattr(self, s)) for c, s in pairs))


@dataclass(frozen=True)
class Submission:
    """A submitted folder: its judged studies, or why it cannot be read."""

    folder: str
    studies: list[Judged]
    refusal: str = ""


def read(folders: Iterable[Path], train_images: int, ring: bool = False) -> list[Submission]:
    """Return every folder's studies, judged; an unreadable folder does not affect others.

    A folder may also be a single file. Duplicates are read once. A text without a table of times is
    passed over beside a file that has one.
    """
    found = {folder: _read(folder, train_images, ring) for folder in dict.fromkeys(folders)}
    read = {folder.parent for folder, one in found.items() if one.studies}
    return [
        one
        for folder, one in found.items()
        if one.studies or folder.suffix not in (".md", ".txt") or folder.parent not in read
    ]


def _read(folder: Path, train_images: int, ring: bool) -> Submission:
    # The name may be any bytes.
    name = printable(str(folder)).replace("\n", "\\n")
    try:
        studies = published.read_folder(folder, train_images)
        judged = [Judged(one, name, judge(one, train_images, ring)) for one in studies]
        return Submission(name, judged)
    except UserError as error:
        return Submission(name, [], printable(str(error)).replace("\n", "\\n"))
    except Exception as error:  # A bug in one study must not affect the others.
        return Submission(name, [], _failed(name, error))


def _failed(folder: str, error: Exception) -> str:
    traceback.print_exception(error)
    return f"{folder}: the audit itself failed ({error!r}); please report it"


def failed(submissions: list[Submission]) -> list[str]:
    """Return the unreadable folders, and those of a study with an error."""
    return [
        one.folder
        for one in submissions
        if one.refusal or any((each.rows["severity"] == "error").any() for each in one.studies)
    ]


def as_text(submissions: list[Submission]) -> str:
    """Return a line for each finding, for each study, and for what several submissions share."""
    lines, summary = [], []
    for one in submissions:
        if one.refusal:
            summary.append((one.folder, "", f"cannot be read: {one.refusal}"))
        for judged in one.studies:
            lines += _lines(judged)
            summary.append((one.folder, judged.study.name, judged.counts))
    widths = [max(len(row[column]) for row in summary) for column in (0, 1)]
    table = [f"{a:<{widths[0]}}  {b:<{widths[1]}}  {verdict}" for a, b, verdict in summary]
    shared = report.shared([one.studies for one in submissions])
    return "\n".join([*lines, *[""] * bool(lines), *table, *[""] * bool(shared), *shared])


def _lines(judged: Judged) -> list[str]:
    study = judged.study
    lines = [f"{judged.folder}: {study.name}: read: {study.reading}"] if study.reading else []
    for one in rows_of(judged.findings):
        strategy = one.strategy.replace(NOT_STATED, "")
        where = ": ".join(filter(None, (strategy, one.values)))
        explains = f", {one.explains} figures" if one.explains else ""
        advice = f"; {one.advice}" if one.advice and one.severity != "info" else ""
        lines.append(
            f"{judged.folder}: {study.name}: {one.name}: {one.cause}: {one.sentence} "
            f"({where}{explains}){advice}"
        )
    return lines


def write(
    submissions: list[Submission], template: Path, index: Path, points: Points | None = None
) -> None:
    """Write the index page, and in a folder of its name the pages, audit.csv and audit.json."""
    folder, overview, judged = index.with_suffix(""), [], list[Judged]()
    for number, one in enumerate(submissions, start=1):
        name = f"{number:03d}-{re.sub(r'[^A-Za-z0-9]+', '-', Path(one.folder).stem)[:60]}.html"
        refusal, link, title = one.refusal, f"{quote(folder.name)}/{name}", f"Audit of {one.folder}"
        try:
            page = html.render(template, title=title, tables=[], studies=one.studies, figure=None)
            if one.studies:
                files.write_text(folder / name, page)
            overview += [
                each.overview(f"{link}#{each.id}", f"{points.earned(each):g}" if points else "")
                for each in one.studies
            ]
            judged += one.studies
        except Exception as error:
            refusal = _failed(one.folder, error)
        if refusal:
            row = {"folder": one.folder, "causes": f"cannot be read: {refusal}"}
            overview.append(row | {"points": f"{points.unreadable:g}" if points else ""})
    title = f"Audit of {fmt.plural(len(submissions), 'submission')}"
    shown = report.index(overview, judged)
    files.write_text(
        index, html.render(template, title=title, tables=shown, studies=[], figure=None)
    )
    found = [each.rows.assign(folder=each.folder, study=each.study.name) for each in judged]
    rows = pd.concat([pd.DataFrame(columns=["folder", "study", *COLUMNS]), *found])
    files.write_text(folder / "audit.csv", as_csv(rows))
    records = [one.to_json(orient="records") for one in (pd.DataFrame(overview), rows)]
    text = '{{"submissions":{},"findings":{}}}\n'.format(*records)
    files.write_text(folder / "audit.json", text)
