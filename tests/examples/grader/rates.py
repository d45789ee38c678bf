"""How often an audit is right: counts of submissions made by `examples.grader.submissions`.

`PYTHONPATH=workflow/scripts:tests python -m examples.grader.rates` takes half an hour.
"""

import sys
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

from examples.grader.submissions import MISTAKES, Submission, submission
from grader.judge import Finding, judge
from grader.study import read_folder

TRAIN_IMAGES = 50_000
UNNAMED = {"unexplained", "nearly"}


def judged(made: Submission) -> list[Finding]:
    """The findings on a submission, remarks left out."""
    with TemporaryDirectory() as name:
        path = Path(name) / made.name
        path.write_text(made.text, encoding="utf-8")
        studies = read_folder(path.parent if made.name == "timings.csv" else path)
    found = [judge(one, studies, TRAIN_IMAGES).findings for one in studies]
    return [one for each in found for one in each if one.severity != "info"]


def blamed(seeds: Iterable[int]) -> dict[int, set[str]]:
    """The severities of the findings on honest submissions that have any, by their seeds."""
    each = ((seed, {one.severity for one in judged(submission(seed))}) for seed in seeds)
    return {seed: severities for seed, severities in each if severities}


def rates(seeds: Iterable[int]) -> tuple[int, int, int]:
    """How many planted mistakes there are, were found, and were named by the first cause.

    A mistake that changes fewer than three figures is left out.
    """
    total = found = named = 0
    for mistake in MISTAKES:
        for made in (submission(seed, mistake) for seed in seeds):
            if made.wrong > 2:
                findings = judged(made)
                here = [one for one in findings if one.quantity == made.column]
                total, found = total + 1, found + bool(findings)
                named += bool(here) and not UNNAMED & set(here[0].names)
    return total, found, named


if __name__ == "__main__":
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    severities = [*blamed(range(number)).values()]
    errors = sum("error" in one for one in severities)
    said = f"{errors} have an error, {len(severities) - errors} a warning alone"
    print(f"of {number:,} honest submissions {said}")
    print("of {} with one mistake {} were found and {} named".format(*rates(range(12))))
