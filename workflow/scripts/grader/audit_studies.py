"""Audit submitted studies: folders with a timings.csv, or any tables of times.

Prints a line for every finding, one for each study, and what several have in common. Exits with 3
if a study has an error or cannot be read. studies/README.md describes timings.csv.
"""

import argparse
import re
import sys
import traceback
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from shlex import split
from typing import Any
from urllib.parse import quote

import pandas as pd
from pydantic import Field, NonNegativeFloat

from grader.findings import COLUMNS, judge
from grader.pages import INDEX, Judged, shared
from grader.study import CIFAR10_TRAIN_IMAGES, read_folder, tables, timings, wanted
from scaling.config.stored import read_config
from scaling.core import files
from scaling.core import numbers as fmt
from scaling.core.errors import UserError, printable, program
from scaling.core.section import Section
from scaling.report import page
from scaling.tables.schema import as_csv

TEMPLATE = Path(__file__).with_name("published.html.j2")
ASCII = str.maketrans("–−·×…\u00a0", "--*x. ")


class ErrorsFound(UserError):
    """The audit is made, and not every study is right."""

    status = 3


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
        pairs = zip(judged.findings["cause"], judged.findings["severity"], strict=True)
        return max(0.0, self.full - sum(self.causes.get(c, getattr(self, s)) for c, s in pairs))


@dataclass
class Submission:
    """A submitted folder: its judged studies and their page, or why it cannot be read."""

    folder: str
    studies: list[Judged] = field(default_factory=list)
    html: str = ""
    refusal: str = ""


def paths(names: list[str]) -> list[Path]:
    """Return the folders and files given as names or patterns, also several in one string."""
    parts = [part for name in names for part in ([name] if Path(name).exists() else split(name))]
    found: list[Path] = []
    for path in map(Path, parts):
        matches = sorted(Path(path.anchor).glob(str(path.relative_to(path.anchor))))
        there = [path] if path.exists() else list(filter(wanted, matches)) or [path]
        found += [one for path in there for one in _inside(path) or [path]]
    return found


def _inside(path: Path) -> list[Path]:
    """A file, a folder with its times, or else the tables in a folder or in those below it."""
    if not path.is_dir() or timings(path).exists() or timings(path).is_symlink():
        return [path]
    folders = sorted(one for one in path.iterdir() if one.is_dir() and wanted(one))
    return tables(path) + [one for folder in folders for one in _inside(folder)]


def read(folders: Iterable[Path], train_images: int, ring: bool = False) -> list[Submission]:
    """Return the studies of every folder or file, judged; one that is unreadable affects no other.

    A text without a table of times is passed over where another file of its folder has one.
    """
    found = {folder: _read(folder, train_images, ring) for folder in dict.fromkeys(folders)}
    read = {folder.parent for folder, one in found.items() if one.studies}
    return [
        one
        for folder, one in found.items()
        if one.studies or folder.suffix not in (".md", ".txt") or folder.parent not in read
    ]


def _read(path: Path, train_images: int, ring: bool) -> Submission:
    # The name may be any bytes.
    folder = printable(str(path)).replace("\n", "\\n")
    try:
        found = read_folder(path, train_images)
        studies = [Judged(one, folder, judge(one, train_images, ring)) for one in found]
        html = page.render(TEMPLATE, title=f"Audit of {folder}", table=None, studies=studies)
        return Submission(folder, studies, html)
    except UserError as error:
        why = printable(str(error)).replace("\n", "\\n")
    except Exception as error:  # A bug of the audit, which must not affect other submissions.
        traceback.print_exception(error)
        why = f"{folder}: the audit itself failed ({error!r}); please report it"
    return Submission(folder, refusal=f"cannot be read: {why}")


def as_text(submissions: list[Submission]) -> str:
    """Return a line for each finding, for each study, and for what several submissions share."""
    lines, table = list[str](), list[tuple[str, str, str]]()
    for one in submissions:
        for each in one.studies:
            lines += [f"{one.folder}: {each.study.name}: {line}" for line in each.lines]
            table.append((one.folder, each.study.name, each.told))
        table += [(one.folder, "", one.refusal)] * bool(one.refusal)
    widths = [max(len(row[column]) for row in table) for column in (0, 1)]
    summary = [f"{a:<{widths[0]}}  {b:<{widths[1]}}  {verdict}" for a, b, verdict in table]
    common = shared([one.studies for one in submissions])
    return "\n".join([*lines, *[""] * bool(lines), *summary, *[""] * bool(common), *common])


def write(submissions: list[Submission], target: Path, points: Points | None = None) -> None:
    """Write the index page, and in a folder of its name the pages, audit.csv and audit.json."""
    folder, overview = target.with_suffix(""), []
    rows = [pd.DataFrame(columns=["folder", "study", *COLUMNS])]
    for number, one in enumerate(submissions, start=1):
        name = f"{number:03d}-{re.sub(r'[^A-Za-z0-9]+', '-', Path(one.folder).stem)[:60]}.html"
        if one.refusal:
            earned = f"{points.unreadable:g}" if points else ""
            overview.append({"folder": one.folder, "causes": one.refusal, "points": earned})
        else:
            files.write_text(folder / name, one.html)
        for each in one.studies:
            earned = f"{points.earned(each):g}" if points else ""
            overview.append(each.overview(f"{quote(folder.name)}/{name}#{each.id}", earned))
            rows.append(each.rows.assign(folder=each.folder, study=each.study.name))
    title = f"Audit of {fmt.plural(len(submissions), 'submission')}"
    about: dict[str, Any] = {"title": title, "table": INDEX.make(overview), "studies": []}
    common = shared([one.studies for one in submissions])
    files.write_text(target, page.render(TEMPLATE, **about, shared=common))
    found = pd.concat(rows)
    files.write_text(folder / "audit.csv", as_csv(found))
    records = [one.to_json(orient="records") for one in (pd.DataFrame(overview), found)]
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
    add("--output", type=Path, help="the HTML index to write, pages beside it")
    args = parser.parse_args(argv)
    scheme = f"the points scheme {args.points}"
    points = Points.of(read_config(args.points), scheme) if args.points else None
    submissions = read(paths(args.folders), args.train_images, args.ring)
    if args.output:
        write(submissions, args.output, points)
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    print(printable(as_text(submissions)).translate(ASCII))
    if args.output:
        print(f"\nThe page is {args.output}")
    wrong = {each.folder for one in submissions for each in one.studies if each.counts["error"]}
    if failed := [one.folder for one in submissions if one.refusal or one.folder in wrong]:
        raise ErrorsFound(
            f"{len(failed)} of {len(submissions)} have errors: {', '.join(failed)}; "
            "see the findings above"
        )
