"""Audit submitted studies: folders with a timings.csv, or such files.

Prints a line for every finding and one for each study. Exits with 1 if a study has an error or
cannot be read (make turns this into 2). studies/README.md describes timings.csv.
"""

import argparse
import shlex
import sys
from pathlib import Path

from grader import submissions as report_submissions
from grader.study import CIFAR10_TRAIN_IMAGES
from scaling.config.config_file import read_config
from scaling.core import files
from scaling.core.errors import UserError, printable, program

TEMPLATE = Path(__file__).with_name("published.html.j2")
EMPTY = Path(__file__).parents[3] / "studies/template.csv"
ASCII = str.maketrans("–−·×…\u00a0", "--*x. ")


def paths(names: list[str]) -> list[Path]:
    """Return the folders and files given as names or patterns, also several in one string."""
    found: list[Path] = []
    for name in names:
        for part in [name] if Path(name).exists() else shlex.split(name):
            path = Path(part)
            matches = sorted(Path(path.anchor).glob(str(path.relative_to(path.anchor))))
            found += [path] if path.exists() else matches or [path]
    return found


@program
def main(argv: list[str] | None = None) -> None:
    """Audit the folders; write index, pages, audit.csv and audit.json, if requested."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="+", help="folders with a timings.csv, or files")
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
    parser.add_argument(
        "--template", action="store_true", help="write an empty timings.csv into the folder instead"
    )
    args = parser.parse_args(argv)
    if args.template:
        for folder in map(Path, args.folders):
            path = folder / "timings.csv"
            if path.exists():
                raise UserError(f"{path} exists; name another folder")
            files.write_text(path, EMPTY.read_text(encoding="utf-8"))
            print(f"Fill in {path}")
        return
    if args.train_images < 1:
        raise UserError(f"--train-images {args.train_images} is no training set; give 1 or more")
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
        raise UserError(
            f"{len(failed)} of {len(submissions)} have errors: {', '.join(failed)}; "
            "see the findings above"
        )
