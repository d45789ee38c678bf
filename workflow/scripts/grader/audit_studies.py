"""Audit submitted studies: files with tables, or folders of them.

Prints a line for every finding and one for each study; last how many files were given, read and
refused. Exits with 3 if a study has an error or cannot be read.
"""

import argparse
import re
import sys
import traceback
from pathlib import Path
from shlex import split
from typing import NamedTuple
from urllib.parse import quote

import pandas as pd

from grader import pages
from grader.judge import judge
from grader.pages import COLUMNS, Judged
from grader.study import CIFAR10_TRAIN_IMAGES, read_folder
from scaling.config.stored import read_config
from scaling.core import files
from scaling.core import numbers as fmt
from scaling.core.errors import UserError, printable, program
from scaling.report import page
from scaling.tables.schema import as_csv

FORMS: dict[str, dict[str, float]] = read_config(page.REPORT / "forms.yaml")
KINDS = {".csv", ".tsv", ".txt", ".md", ".markdown", ".xlsx"}
"""Endings of files that may hold a table."""
SHOWN = "[!.~_]*"
"""Pattern of names that are not hidden or temporary files of file managers and editors."""


class Submission(NamedTuple):
    """A submitted folder or file: its judged studies, or why it cannot be read."""

    folder: str
    studies: list[Judged]
    refusal: str = ""


def paths(names: list[str]) -> list[Path]:
    """Return the paths that `names` match: names or glob patterns, several in one string or not."""
    parts = [part for name in names for part in ([name] if Path(name).exists() else split(name))]
    listed = list[Path]()
    for path in map(Path, parts):
        matches = Path(path.anchor).glob(str(path.relative_to(path.anchor)))
        there = [path] if path.exists() else sorted(one for one in matches if one.match(SHOWN))
        listed += [table for one in there or [path] for table in _inside(one) or [one]]
    return list(dict.fromkeys(listed))


def _inside(path: Path) -> list[Path]:
    """Return a file or a folder with timings.csv itself, else the tables in and below a folder."""
    if not path.is_dir() or (path / "timings.csv").exists():
        return [path]
    below = (one for one in sorted(path.glob(SHOWN)) if one.is_dir() or one.suffix.lower() in KINDS)
    return [table for one in below for table in _inside(one)]


def read(path: Path, images: int, form: str = "") -> Submission:
    """Return the judged studies of a folder or file, or a refusal if it cannot be read."""
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


def as_text(submissions: list[Submission]) -> str:
    """Return a line for each finding, a line for each study, and one with numbers of files."""
    studies = [each for one in submissions for each in one.studies]
    lines = [f"{x.folder}: {x.study.name}: {line}" for x in studies for line in x.lines]
    lines += [f"{each.folder}  {each.study.name}  {each.result}" for each in studies]
    refused = [f"{one.folder}  {one.refusal}" for one in submissions if one.refusal]
    total, read = len(submissions), len(submissions) - len(refused)
    return "\n".join([*lines, *refused, f"{total} given, {read} read, {len(refused)} refused"])


def write(submissions: list[Submission], target: Path) -> None:
    """Write an index to `target`, and audit.csv to a folder of the same name.

    Pages of several submissions go to that folder; a single one is shown below the index.
    """
    folder, index, title = (
        target.with_suffix(""),
        [],
        f"Audit of {fmt.plural(len(submissions), 'submission')}",
    )
    for number, one in enumerate(submissions, start=1):
        name = f"{number:03d}-{re.sub(r'[^A-Za-z0-9]+', '-', Path(one.folder).stem)[:60]}.html"
        page = f"{quote(folder.name)}/{name}" if len(submissions) > 1 else ""
        index += [(f"{page}#{each.id}", each.row) for each in one.studies]
        if one.refusal:
            index.append(("", ("–", one.folder, "–", "–", one.refusal, "–")))
        elif page:
            pages.write(folder / name, f"Audit of {one.folder}", [], one.studies)
    pages.write(target, title, index, [] if len(submissions) > 1 else submissions[0].studies)
    table = pd.DataFrame([row for _, row in index], columns=COLUMNS)
    files.write_text(folder / "audit.csv", as_csv(table))


@program
def main(argv: list[str] | None = None) -> None:
    """Audit the folders; write index, pages and audit.csv, if requested."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("folders", nargs="+", help="folders, or files with tables")
    images = "images in the training set of the studies (default: CIFAR-10's %(default)s)"
    add("--train-images", type=int, default=CIFAR10_TRAIN_IMAGES, help=images)
    add("--form", choices=FORMS, default="", help="points by question of this form of the course")
    add("--output", type=Path, help="the HTML index to write, pages beside it")
    args = parser.parse_args(argv)
    submissions = [read(path, args.train_images, args.form) for path in paths(args.folders)]
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    print(printable(as_text(submissions)))
    if args.output:
        write(submissions, args.output)
        print(f"The page is {args.output}")
    wrong = {
        x.folder for one in submissions for x in one.studies for y in x.findings if "error" in y
    }
    if failed := [one.folder for one in submissions if one.refusal or one.folder in wrong]:
        listed = f"{len(failed)} of {len(submissions)} have errors: {', '.join(failed)}"
        error = UserError(f"{listed}; see the findings above")
        error.status = 3
        raise error
