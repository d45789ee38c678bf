"""Audit submitted studies: files with tables, or folders of them.

Prints a line for every finding and one for each study; last how many files were given, read and
refused. Exits with 3 if a study has an error or cannot be read.
"""

import argparse
import re
import sys
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from shlex import split
from urllib.parse import quote

import pandas as pd

from grader import pages
from grader.judge import judge
from grader.pages import COLUMNS, Judged
from grader.study import CIFAR10_TRAIN_IMAGES, read_folder
from scaling.config.stored import read_config
from scaling.core import files
from scaling.core.errors import UserError, printable, program
from scaling.report import page
from scaling.tables.schema import as_csv

FORMS: dict[str, dict[str, float]] = read_config(page.REPORT / "forms.yaml")
ASCII = str.maketrans("–−·×…\u00a0", "--*x. ")


class ErrorsFound(UserError):
    """Raised after the audit if a study has an error or could not be read."""

    status = 3


@dataclass
class Submission:
    """A submitted folder or file: its judged studies, or why it cannot be read."""

    folder: str
    studies: list[Judged] = field(default_factory=list)
    refusal: str = ""

    @property
    def failed(self) -> bool:
        return bool(self.refusal) or any(
            finding.severity == "error"
            for one in self.studies
            for finding in one.judgement.findings
        )


KINDS = {".csv", ".tsv", ".txt", ".md", ".markdown", ".xlsx"}
"""Endings of files that may hold a table."""


def wanted(path: Path) -> bool:
    """Return whether a path is not a hidden or temporary file of a file manager or an editor."""
    return not path.name.startswith((".", "~$", "__MACOSX"))


def paths(names: list[str]) -> list[Path]:
    """Return the paths of names or glob patterns, of which one string may hold several."""
    listed: list[Path] = []
    parts = [part for name in names for part in ([name] if Path(name).exists() else split(name))]
    for path in map(Path, parts):
        matches = sorted(Path(path.anchor).glob(str(path.relative_to(path.anchor))))
        there = [path] if path.exists() else list(filter(wanted, matches))
        listed += [one for path in there or [path] for one in _inside(path) or [path]]
    return list(dict.fromkeys(listed))


def _inside(path: Path) -> list[Path]:
    """Return `path` if it is a file or has a table of timings, else the tables in and below it."""
    timings = path / "timings.csv"
    if not path.is_dir() or timings.exists() or timings.is_symlink():
        return [path]
    every = sorted(filter(wanted, path.iterdir()))
    files = [one for one in every if one.is_file() and one.suffix.lower() in KINDS]
    return files + [one for folder in every if folder.is_dir() for one in _inside(folder)]


def read(path: Path, images: int, form: str = "") -> Submission:
    """Return the judged studies of a folder or file, or a refusal if it cannot be read."""
    # The name may be any bytes.
    folder = printable(str(path)).replace("\n", "\\n")
    try:
        judged = ((one, judge(one, images)) for one in read_folder(path))
        return Submission(folder, [Judged(one, folder, of, FORMS.get(form)) for one, of in judged])
    except UserError as error:
        why = printable(str(error)).replace("\n", "\\n")
    except Exception as error:  # A bug of the audit, which must not affect other submissions.
        traceback.print_exception(error)
        why = f"{folder}: the audit itself failed ({error!r}); please report it"
    return Submission(folder, refusal=f"cannot be read: {why}")


def as_text(submissions: list[Submission]) -> str:
    """Return a line for each finding, a line for each study, and one with numbers of files."""
    studies = [(one.folder, each.study.name, each) for one in submissions for each in one.studies]
    lines = [f"{folder}: {name}: {line}" for folder, name, each in studies for line in each.lines]
    lines += [f"{folder}  {name}  {each.result}" for folder, name, each in studies]
    refused = [f"{one.folder}  {one.refusal}" for one in submissions if one.refusal]
    total, read = len(submissions), len(submissions) - len(refused)
    return "\n".join([*lines, *refused, f"{total} given, {read} read, {len(refused)} refused"])


def write(submissions: list[Submission], target: Path) -> None:
    """Write the index to `target`; the pages and audit.csv go to a folder of the same name."""
    folder, index = target.with_suffix(""), []
    for number, one in enumerate(submissions, start=1):
        name = f"{number:03d}-{re.sub(r'[^A-Za-z0-9]+', '-', Path(one.folder).stem)[:60]}.html"
        if one.refusal:
            blank = dict.fromkeys(COLUMNS, "–") | {"folder": one.folder, "causes": one.refusal}
            index.append({"link": "", "row": tuple(blank.values())})
        else:
            pages.write(folder / name, f"Audit of {one.folder}", [], one.studies)
        index += [each.overview(f"{quote(folder.name)}/{name}#{each.id}") for each in one.studies]
    pages.write(target, f"Audit of {len(submissions)} submissions", index, [])
    table = pd.DataFrame([one["row"] for one in index], columns=COLUMNS)
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
    print(printable(as_text(submissions)).translate(ASCII))
    if args.output:
        write(submissions, args.output)
        print(f"The page is {args.output}")
    if failed := [one.folder for one in submissions if one.failed]:
        text = f"{len(failed)} of {len(submissions)} have errors: {', '.join(failed)}"
        raise ErrorsFound(f"{text}; see the findings above")
