"""Audit submitted studies: files with tables, or folders of them.

Prints a line for each finding and each study, then how many files were given, read and refused.
Exits with 3 if a study has an error or cannot be read.
"""

import argparse
import re
import sys
import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from shlex import split
from typing import Any, NamedTuple
from urllib.parse import quote

import numpy as np
import pandas as pd

from grader.judge import SEVERITIES, Finding, Judgement, judge
from grader.study import CIFAR10_TRAIN_IMAGES, QUESTIONS, TITLES, Study, read_folder
from scaling.config.stored import read_config
from scaling.core import files
from scaling.core import numbers as fmt
from scaling.core.errors import UserError, printable, program
from scaling.report import page
from scaling.report.table import EMPTY, Figure, Table, fill
from scaling.tables.schema import as_csv

FORMS: dict[str, dict[str, float]] = read_config(page.REPORT / "forms.yaml")
KINDS = {".csv", ".tsv", ".txt", ".md", ".markdown", ".xlsx"}
"""Endings of files that may hold a table."""
HIDDEN, OF_FOLDER = (".", "~", "__"), ("timings.csv", "studies.yaml")
"""HIDDEN: starts of names of hidden and temporary files. OF_FOLDER: files of a study's folder."""
COLUMNS = ["study", "folder", "cells", "result", "causes", "points"]
LISTED, MOST_NAMES = 3, 30
"""Maximum number of configurations in a line of text, and of unread files in the last lines."""


@dataclass(frozen=True)
class Judged:
    """A study in `folder` and the result of its audit. `form` maps questions to full points."""

    study: Study
    folder: str
    judgement: Judgement
    form: dict[str, float] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """Return the HTML id of the study."""
        return quote(f"{self.folder}/{self.study.name}")

    @property
    def result(self) -> str:
        """Return counts as text, such as `9 figures: 7 right, 2 wrong; 1 error, 2 remarks`."""
        severities = Counter(one.severity for one in self.judgement.findings)
        counts = [fmt.plural(severities[x], x) for x in SEVERITIES if severities[x]]
        figures = self.judgement.figures
        right = ", ".join(f"{n} {word}" for word, n in figures.items() if n)
        total = f"{fmt.plural(figures.total(), 'figure')}: {right}"
        findings = ", ".join(counts) or "no findings"
        return f"{total if right else 'no figures beside the times'}; {findings}"

    @property
    def findings(self) -> list[tuple[str, str, str, str, str]]:
        """Return (severity, cause, description, configurations, advice) of each finding."""
        every = [(one, *one.words) for one in self.judgement.findings]
        return [(x.severity, fmt.words(x.cause), what, where(x), todo) for x, what, todo in every]

    @property
    def wrong(self) -> list[tuple[str, ...]]:
        """Return (question, quantity, `GPUs x batch size`, printed, expected) per wrong number."""
        return [
            (QUESTIONS[one.quantity], TITLES[one.quantity], *cell)
            for one in self.judgement.findings
            if one.quantity and one.severity != "remark"
            for cell in cells(one)
        ]

    @property
    def points(self) -> list[tuple[str, str, str]]:
        """Return (question, points, full points) for each question, then for "all" together."""
        left = {name: n for name, n in self.form.items() if name in QUESTIONS.values()}
        for one in {one.cause: one for one in reversed(self.judgement.findings)}.values():
            name = QUESTIONS.get(one.quantity, "Q2")
            left |= {name: max(0, left[name] - SEVERITIES[one.severity])} if name in left else {}
        left, full = left | {"all": sum(left.values())}, sum(self.form[name] for name in left)
        return [(name, f"{n:g}", f"{self.form.get(name, full):g}") for name, n in left.items()]

    @property
    def lines(self) -> list[str]:
        """Return lines of text: a note on each part that was not read, then each finding."""
        lines = [f"note: {note}" for note in dict.fromkeys(self.study.notes)]
        for severity, cause, sentence, place, advice in self.findings:
            action = f"; {advice}" if advice and severity != "remark" else ""
            lines.append(f"{severity}: {cause}: {sentence} ({place}){action}")
        return lines

    @property
    def row(self) -> tuple[str, ...]:
        """Return the study's row in the index of all studies. `COLUMNS` names its columns."""
        severe = (one for one in self.judgement.findings if one.severity != "remark")
        causes = (f"{TITLES.get(x.quantity, '')}: {fmt.words(x.cause)}" for x in severe)
        named = ", ".join(dict.fromkeys(x.removeprefix(": ") for x in causes)) or "–"
        about = self.study.name, self.folder, f"{len(self.study.rows)}", self.result
        return *about, named, self.points[-1][1] if self.form else ""


@np.errstate(all="ignore")
def cells(one: Finding) -> list[tuple[str, str, str]]:
    """Return (`GPUs x batch size`, printed value, expected value) for each affected configuration.

    A printed value keeps its number of decimals. An unknown value is "–".
    """
    right = np.where(one.expected.middle < 0, np.nan, one.expected.middle)
    digits = np.round(-np.log10((one.printed.high - one.printed.low) / 2))
    columns = (one.cells.gpus, one.cells.batch, one.printed.middle, digits, right, one.place)
    shown = list[tuple[str, str, str]]()
    for n, b, value, digit, expected, there in zip(*np.broadcast_arrays(*columns), strict=True):
        text, other = fmt.distinguishable(float(value), float(expected))
        if np.isfinite(digit):
            text = f"{value:,.{max(0, int(digit))}f}".replace("-", "−")
        shown += [(f"{n} x {b}", text, other)] * int(there)
    return shown


def where(one: Finding) -> str:
    """Return the first `LISTED` configurations of a finding with their values, as text."""
    every = cells(one)
    listed = [
        cell + f": {value}" * (value != "–") + f", expected {right}" * (right != "–")
        for cell, value, right in every[:LISTED]
    ]
    text = ("; " if ":" in "".join(listed) else ", ").join(listed)
    more = f" and more, {len(every)} in all" * (len(every) > LISTED)
    return f"{one.cells.strategy}: {text}{more}".removeprefix(": ")


class Submission(NamedTuple):
    """A submitted folder or file: its audited studies, or `refusal`: why it cannot be read."""

    folder: str
    studies: list[Judged]
    refusal: str = ""


def paths(names: list[str]) -> tuple[list[Path], list[Path]]:
    """Return the paths to audit, and the files in given folders that are not read.

    A name is a path, a glob pattern, or several of these in one string. A folder with timings.csv
    is audited as a whole, any other folder table by table. A folder without tables is a path to
    audit if it is given, or lies directly in a given folder that has no tables.
    """
    parts = [part for name in names for part in ([name] if Path(name).exists() else split(name))]
    chosen, others = list[Path](), list[Path]()
    for path in map(Path, parts):
        matches = sorted(Path(path.anchor).glob(str(path.relative_to(path.anchor))))
        there = [path] * path.exists() or [x for x in matches if not x.name.startswith(HIDDEN)]
        for one in there or [path]:
            inside = _inside(one)
            chosen += [x for x in inside if inside[x]] or [one]
            others += [x for x in inside if not inside[x]]
    return [*dict.fromkeys(chosen)], [*dict.fromkeys(others)]


def _inside(path: Path, given: bool = True) -> dict[Path, bool]:
    """Map each path in a folder (or the file `path`) to whether it is audited."""
    if not path.is_dir():
        return {path: True}
    shown = [one for one in sorted(path.iterdir()) if not one.name.startswith(HIDDEN)]
    rest = [one for one in shown if one.is_file() and one.name not in OF_FOLDER]
    if path / "timings.csv" in shown:
        return {path: True, **dict.fromkeys(rest, False)}
    # Beside answers.md, the same answers in the order of a form.
    again = "answers-*.md" if path / "answers.md" in rest else ""
    found = {x: x.suffix.lower() in KINDS and not (again and x.match(again)) for x in rest}
    of_folders = given and not any(found.values())
    for one in (one for one in shown if one.is_dir()):
        below = _inside(one, given=False)
        alone = of_folders and not any(below.values())
        found |= {one: True, **below} if alone else below
    return found


def read(path: Path, images: int, form: str = "") -> Submission:
    """Read and audit the studies of a folder or file. An error is returned as `refusal`.

    `images` is the size of the training set. `form` is a key of `FORMS`, or "" to give no points.
    """
    # The name may be any bytes.
    folder = printable(str(path)).replace("\n", "\\n")
    try:
        judged = ((one, judge(one, images)) for one in read_folder(path))
        return Submission(folder, [Judged(x, folder, of, FORMS.get(form, {})) for x, of in judged])
    except UserError as error:
        why = printable(str(error)).replace("\n", "\\n")
    except Exception as error:  # A bug of the audit, which must not affect other submissions.
        traceback.print_exception(error)
        why = f"{folder}: the audit itself failed ({error!r}); please report it"
    return Submission(folder, [], f"cannot be read: {why}")


def as_text(submissions: list[Submission], others: list[Path]) -> str:
    """Return lines on findings, studies, refusals and the unread files `others`; then counts."""
    studies = [each for one in submissions for each in one.studies]
    lines = [f"{x.folder}: {x.study.name}: {line}" for x in studies for line in x.lines]
    lines += [f"{each.folder}  {each.study.name}  {each.result}" for each in studies]
    refused = [f"{one.folder}  {one.refusal}" for one in submissions if one.refusal]
    total, read = len(submissions), len(submissions) - len(refused)
    if others:
        names = ", ".join(map(str, others[:MOST_NAMES]))
        more = f" and {len(others) - MOST_NAMES} more" * (len(others) > MOST_NAMES)
        refused.append(f"not read: {names}{more}; save tables as CSV and give each by its name")
    return "\n".join([*lines, *refused, f"{total} given, {read} read, {total - read} refused"])


def listed(one: Submission, link: str) -> list[tuple[Any, ...]]:
    """Return rows (link, *`COLUMNS`): a row for each study, or a single row with the refusal."""
    rows = [(f"{link}#{each.id}", *each.row) for each in one.studies]
    return rows or [("", "–", one.folder, "–", "–", one.refusal, "–")]


def table(name: str, title: str, heads: list[str], rows: list[tuple[str, ...]]) -> Table:
    """Return a table with HTML id `name` and columns `heads`. The first two identify the row."""
    return Table(name, title, heads, [[Figure(text or EMPTY) for text in row] for row in rows], 2)


def render(target: Path, title: str, index: list[tuple[Any, ...]], studies: list[Judged]) -> None:
    """Write an HTML page: the table `index` with rows (link, *`COLUMNS`), then `studies`."""
    linked = [(fill('<a href="{}">{}</a>', *row[:2]) if row[0] else "–", *row[2:]) for row in index]
    about: Any = {"title": title, "columns": COLUMNS, "index": linked, "studies": studies}
    about |= {"table": table, "data": fmt.data}
    files.write_text(target, page.render(Path(__file__).with_name("published.html.j2"), **about))


def write(submissions: list[Submission], target: Path) -> None:
    """Write an HTML index and a CSV file: for target `x.html`, x.html and x/audit.csv.

    Several submissions get a page each in folder x. A single submission is shown in x.html itself.
    """
    folder, many, index = target.with_suffix(""), len(submissions) > 1, list[tuple[Any, ...]]()
    for number, one in enumerate(submissions, start=1):
        name = f"{number:03d}-{re.sub(r'[^A-Za-z0-9]+', '-', Path(one.folder).stem)[:60]}.html"
        index += listed(one, f"{quote(folder.name)}/{name}" if many else "")
        if many and one.studies:
            render(folder / name, f"Audit of {one.folder}", listed(one, ""), one.studies)
    title = f"Audit of {fmt.plural(len(submissions), 'submission')}"
    render(target, title, index, [] if many else submissions[0].studies)
    rows = pd.DataFrame([row[1:] for row in index], columns=COLUMNS)
    files.write_text(folder / "audit.csv", as_csv(rows))


@program
def main(argv: list[str] | None = None) -> None:
    """Print findings on submitted studies. With --output, write the HTML index and audit.csv."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("folders", nargs="+", help="folders, or files with tables")
    images = "images in the training set of the studies (default: CIFAR-10's %(default)s)"
    add("--train-images", type=int, default=CIFAR10_TRAIN_IMAGES, help=images)
    add("--form", choices=FORMS, default="", help="points by question of this form of the course")
    add("--output", type=Path, help="the HTML index to write, pages beside it")
    args = parser.parse_args(argv)
    chosen, others = paths(args.folders)
    submissions = [read(path, args.train_images, args.form) for path in chosen]
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    print(printable(as_text(submissions, others)))
    if args.output:
        write(submissions, args.output)
        print(f"The page is {args.output}")
    studies = [x for each in submissions for x in each.studies]
    wrong = {x.folder for x in studies for y in x.findings if "error" in y}
    if failed := [one.folder for one in submissions if one.refusal or one.folder in wrong]:
        counted = f"{len(failed)} of {len(submissions)} have errors or are refused"
        error = UserError(f"{counted}: {', '.join(failed)}; see the findings above")
        error.status = 3
        raise error
