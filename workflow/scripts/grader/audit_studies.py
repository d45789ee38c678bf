"""Audit submitted studies: files with tables, or folders of them.

Prints a line for every finding, one for each study, and what several have in common; last how many
files were given, read and refused. Exits with 3 if a study has an error or cannot be read.
"""

import argparse
import re
import sys
import traceback
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from shlex import split
from typing import Any
from urllib.parse import quote

import pandas as pd
from pydantic import Field, NonNegativeFloat

from grader.formulas import FORMULAS
from grader.judge import judge
from grader.pages import COLUMNS, INDEX, Judged, shared
from grader.study import CIFAR10_TRAIN_IMAGES, read_folder, tables, timings, wanted
from scaling.config.stored import read_config
from scaling.core import files
from scaling.core.errors import UserError, printable, program
from scaling.core.section import Section
from scaling.report import page
from scaling.tables.schema import as_csv

TEMPLATE = Path(__file__).with_name("published.html.j2")
FORMS: dict[str, dict[str, float]] = read_config(page.REPORT / "forms.yaml")
ASCII = str.maketrans("–−·×…\u00a0", "--*x. ")


class ErrorsFound(UserError):
    """The audit is made, and not every study is right."""

    status = 3


class Points(Section):
    """A grading scheme: `full` minus the cost of each cause, once, by its name or severity.

    With a `form` of the course the points are those of its questions.
    """

    full: NonNegativeFloat = 10
    error: NonNegativeFloat = 2
    warning: NonNegativeFloat = 0.5
    info: NonNegativeFloat = 0
    unreadable: NonNegativeFloat = 0
    form: str = ""
    causes: dict[str, NonNegativeFloat] = Field(default_factory=dict)

    def given(self, judged: Judged) -> Judged:
        """Return the study with its points, at least 0; of the form's questions too."""
        cost = dict[str, dict[str, float]]()
        seen = set[str]()
        for one in judged.judgement.findings:
            question = FORMULAS["questions"].get(one.quantity, "Q2")
            for name in set(one.names) - seen:
                price = self.causes.get(name, getattr(self, one.severity) / len(one.names))
                cost.setdefault(question, {})[name] = price
            seen |= set(one.names)
        paid = {question: sum(each.values()) for question, each in cost.items()}
        asked = FORMS.get(self.form, {}).items()
        rows = [(name, full) for name, full in asked if name in FORMULAS["questions"].values()]
        left = [max(0.0, full - paid.get(name, 0)) for name, full in rows]
        earned = sum(left) if rows else max(0.0, self.full - sum(paid.values()))
        table = [(name, f"{x:g}", f"{full:g}") for (name, full), x in zip(rows, left, strict=True)]
        return replace(judged, points=f"{earned:g}", by_question=tuple(table))


@dataclass
class Submission:
    """A submitted folder or file: its judged studies, or why it cannot be read."""

    folder: str
    studies: list[Judged] = field(default_factory=list)
    refusal: str = ""


def paths(names: list[str]) -> list[Path]:
    """Return the folders and files given as names or patterns, also several in one string."""
    parts = [part for name in names for part in ([name] if Path(name).exists() else split(name))]
    found: list[Path] = []
    for path in map(Path, parts):
        matches = sorted(Path(path.anchor).glob(str(path.relative_to(path.anchor))))
        there = [path] if path.exists() else list(filter(wanted, matches)) or [path]
        found += [one for path in there for one in _inside(path) or [path]]
    return list(dict.fromkeys(found))


def _inside(path: Path) -> list[Path]:
    """A file, a folder with its times, or else the tables in a folder or in those below it."""
    if not path.is_dir() or timings(path).exists() or timings(path).is_symlink():
        return [path]
    folders = sorted(one for one in path.iterdir() if one.is_dir() and wanted(one))
    return tables(path) + [one for folder in folders for one in _inside(folder)]


def read(
    folders: Iterable[Path], images: int, ring: bool = False, points: Points | None = None
) -> list[Submission]:
    """Return the studies of every folder or file, judged; what is unreadable affects no other."""
    return [_read(folder, images, ring, points) for folder in folders]


def _read(path: Path, images: int, ring: bool, points: Points | None) -> Submission:
    # The name may be any bytes.
    folder = printable(str(path)).replace("\n", "\\n")
    try:
        found = read_folder(path)
        studies = [Judged(one, folder, judge(one, found, images, ring)) for one in found]
        return Submission(folder, [points.given(one) for one in studies] if points else studies)
    except UserError as error:
        why = printable(str(error)).replace("\n", "\\n")
    except Exception as error:  # A bug of the audit, which must not affect other submissions.
        traceback.print_exception(error)
        why = f"{folder}: the audit itself failed ({error!r}); please report it"
    return Submission(folder, refusal=f"cannot be read: {why}")


def as_text(submissions: list[Submission]) -> str:
    """Return a line for each finding, for each study, for what several share, and for the files."""
    lines, table = list[str](), list[tuple[str, str, str]]()
    for one in submissions:
        for each in one.studies:
            lines += [f"{one.folder}: {each.study.name}: {line}" for line in each.lines]
            table.append((one.folder, each.study.name, each.told))
        table += [(one.folder, "", one.refusal)] * bool(one.refusal)
    widths = [max(len(row[column]) for row in table) for column in (0, 1)]
    summary = [f"{a:<{widths[0]}}  {b:<{widths[1]}}  {verdict}" for a, b, verdict in table]
    common = shared([one.studies for one in submissions])
    refused = sum(bool(one.refusal) for one in submissions)
    last = f"{len(submissions)} given, {len(submissions) - refused} read, {refused} refused"
    return "\n".join(
        [*lines, *[""] * bool(lines), *summary, *[""] * bool(common), *common, "", last]
    )


def write(submissions: list[Submission], target: Path, points: Points | None = None) -> None:
    """Write the index page, and in a folder of its name the pages, audit.csv and audit.json."""
    folder, overview, rows = target.with_suffix(""), list[dict[str, Any]](), list[dict[str, Any]]()
    for number, one in enumerate(submissions, start=1):
        name = f"{number:03d}-{re.sub(r'[^A-Za-z0-9]+', '-', Path(one.folder).stem)[:60]}.html"
        if one.refusal:
            earned = f"{points.unreadable:g}" if points else ""
            row = ("–", one.folder, *["–"] * (len(INDEX) - 4), one.refusal, earned)
            overview.append({"link": "", "row": row})
        else:
            title, studies = f"Audit of {one.folder}", one.studies
            html = page.render(TEMPLATE, title=title, index=[], shared=[], studies=studies)
            files.write_text(folder / name, html)
        for each in one.studies:
            overview.append(each.overview(f"{quote(folder.name)}/{name}#{each.id}"))
            rows += [
                {"folder": each.folder, "study": each.study.name, **row} for row in each.rows()
            ]
    about = {"title": f"Audit of {len(submissions)} submissions", "index": overview, "studies": []}
    files.write_text(
        target, page.render(TEMPLATE, **about, shared=shared([x.studies for x in submissions]))
    )
    found = pd.DataFrame(rows, columns=["folder", "study", *COLUMNS])
    files.write_text(folder / "audit.csv", as_csv(found))
    listed = pd.DataFrame([one["row"] for one in overview], columns=INDEX)
    records = [one.to_json(orient="records") for one in (listed, found)]
    text = '{{"submissions":{},"findings":{}}}\n'.format(*records)
    files.write_text(folder / "audit.json", text)


@program
def main(argv: list[str] | None = None) -> None:
    """Audit the folders; write index, pages, audit.csv and audit.json, if requested."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("folders", nargs="+", help="folders, or files with tables")
    images = "images in the training set of the studies (default: CIFAR-10's %(default)s)"
    add("--train-images", type=int, default=CIFAR10_TRAIN_IMAGES, help=images)
    add("--ring", action="store_true", help="count a ring's bytes for DataParallel too")
    add("--points", type=Path, help="a points scheme, see studies/README.md")
    add("--form", choices=FORMS, help="points of the questions of this form of the course")
    add("--output", type=Path, help="the HTML index to write, pages beside it")
    args = parser.parse_args(argv)
    entries = read_config(args.points) if args.points else {}
    entries |= {"form": args.form} if args.form else {}
    points = Points.of(entries, f"the points scheme {args.points}") if entries else None
    submissions = read(paths(args.folders), args.train_images, args.ring, points)
    if args.output:
        write(submissions, args.output, points)
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    print(printable(as_text(submissions)).translate(ASCII))
    if args.output:
        print(f"The page is {args.output}")
    wrong = {each.folder for one in submissions for each in one.studies if each.counts["error"]}
    if failed := [one.folder for one in submissions if one.refusal or one.folder in wrong]:
        said = f"{len(failed)} of {len(submissions)} have errors: {', '.join(failed)}"
        raise ErrorsFound(f"{said}; see the findings above")
