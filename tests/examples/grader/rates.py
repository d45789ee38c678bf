"""How often an audit is right: counts of submissions made by `examples.grader.submissions`.

`PYTHONPATH=workflow/scripts:tests python -m examples.grader.rates` takes more than an hour.
"""

import sys
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

from examples.grader.submissions import MISTAKES, Submission, submission
from grader.judge import judge
from grader.slips import Finding
from grader.study import read_folder

TRAIN_IMAGES = 50_000
UNNAMED = {"unexplained", "nearly"}


def judged(submitted: Submission) -> list[Finding]:
    """The findings on a submission, remarks left out."""
    with TemporaryDirectory() as name:
        path = Path(name) / submitted.name
        path.write_text(submitted.text, encoding="utf-8")
        studies = read_folder(path.parent if submitted.name == "timings.csv" else path)
    findings = [one for each in studies for one in judge(each, studies, TRAIN_IMAGES).findings]
    return [one for one in findings if one.severity != "info"]


def blamed(seeds: Iterable[int]) -> dict[int, set[str]]:
    """The severities of the findings on honest submissions that have any, by their seeds."""
    each = ((seed, {one.severity for one in judged(submission(seed))}) for seed in seeds)
    return {seed: severities for seed, severities in each if severities}


def rates(seeds: Iterable[int], mistakes: Iterable[str] = MISTAKES) -> tuple[int, int, int]:
    """How many planted mistakes there are, were found, and were named by the first cause.

    A mistake that changes fewer than three figures is left out.
    """
    total = noticed = named = 0
    for mistake in mistakes:
        for planted in (submission(seed, mistake) for seed in seeds):
            if planted.wrong > 2:
                findings = judged(planted)
                here = [one for one in findings if one.quantity == planted.column]
                total, noticed = total + 1, noticed + bool(findings)
                named += bool(here) and here[0].cause not in UNNAMED
    return total, noticed, named


if __name__ == "__main__":
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    severities = [*blamed(range(number)).values()]
    errors = sum("error" in one for one in severities)
    text = f"{errors} have an error, {len(severities) - errors} a warning alone"
    print(f"of {number:,} honest submissions {text}")
    print("of {} with one mistake {} were found and {} named".format(*rates(range(12))))
