"""Audit studies that people hand in: folders with a timings.csv, or single files like it.

Prints every finding, then one line for each study. Exits with 1 when a study has an error or cannot
be read (make turns this into 2). studies/README.md says what a timings.csv holds.
"""

import argparse
from pathlib import Path

from scaling.core import files
from scaling.core.errors import UserError, program
from scaling.published.study import CIFAR10_TRAIN_IMAGES
from scaling.report import submissions as report_submissions

TEMPLATE = Path(__file__).parents[2] / "report/published.html.j2"


@program
def main(argv: list[str] | None = None) -> None:
    """Audit the folders; write the page, if one is asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "folders", type=Path, nargs="+", help="folders with a timings.csv, or files"
    )
    parser.add_argument(
        "--train-images",
        type=int,
        default=CIFAR10_TRAIN_IMAGES,
        help="images in the training set of the studies (default: CIFAR-10's %(default)s)",
    )
    parser.add_argument("--output", type=Path, help="the HTML page to write")
    args = parser.parse_args(argv)
    submissions = report_submissions.read(args.folders, args.train_images)
    if args.output:
        files.write_text(args.output, report_submissions.page(submissions, TEMPLATE))
    print(report_submissions.as_text(submissions))
    if args.output:
        print(f"\nThe page is {args.output}")
    failed = report_submissions.failed(submissions)
    if failed:
        raise UserError(
            f"{len(failed)} of {len(submissions)} have errors: {', '.join(failed)}; "
            "see the findings above"
        )
