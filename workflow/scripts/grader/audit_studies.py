"""Audit submitted studies: folders with a timings.csv, or any tables of times.

Prints a line for every finding, one for each study, and what several have in common. Exits with 3
if a study has an error or cannot be read. studies/README.md describes timings.csv.
"""

import argparse
import shlex
import sys
from pathlib import Path

from grader import submissions as report_submissions
from grader.study import CIFAR10_TRAIN_IMAGES, tables, timings, wanted
from scaling.config.stored import read_config
from scaling.core.errors import UserError, printable, program

TEMPLATE = Path(__file__).with_name("published.html.j2")
ASCII = str.maketrans("–−·×…\u00a0", "--*x. ")


class ErrorsFound(UserError):
    """The audit is made, and not every study is right."""

    status = 3


def paths(names: list[str]) -> list[Path]:
    """Return the folders and files given as names or patterns, also several in one string."""
    found: list[Path] = []
    for name in names:
        for part in [name] if Path(name).exists() else shlex.split(name):
            path = Path(part)
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


@program
def main(argv: list[str] | None = None) -> None:
    """Audit the folders; write index, pages, audit.csv and audit.json, if requested."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="+", help="folders, or files with tables")
    parser.add_argument(
        "--train-images",
        type=int,
        default=CIFAR10_TRAIN_IMAGES,
        help="images in the training set of the studies (default: CIFAR-10's %(default)s)",
    )
    parser.add_argument(
        "--ring", action="store_true", help="count a ring's bytes for DataParallel too"
    )
    parser.add_argument("--points", type=Path, help="a points scheme, see studies/README.md")
    parser.add_argument("--output", type=Path, help="the HTML index to write, pages beside it")
    args = parser.parse_args(argv)
    if not 1 <= args.train_images <= 10**12:
        raise UserError(f"--train-images {args.train_images} is no training set; give 1 to 10^12")
    points = None
    if args.points:
        scheme = f"the points scheme {args.points}"
        points = report_submissions.Points.of(read_config(args.points), scheme)
    submissions = report_submissions.read(paths(args.folders), args.train_images, args.ring)
    if args.output:
        report_submissions.write(submissions, TEMPLATE, args.output, points)
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    print(printable(report_submissions.as_text(submissions)).translate(ASCII))
    if args.output:
        print(f"\nThe page is {args.output}")
    if failed := report_submissions.failed(submissions):
        raise ErrorsFound(
            f"{len(failed)} of {len(submissions)} have errors: {', '.join(failed)}; "
            "see the findings above"
        )
