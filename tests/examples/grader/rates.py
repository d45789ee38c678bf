"""How often an audit is right: counts of submissions made by `examples.grader.submissions`."""

import sys
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

from examples.grader.published_study import TRAIN_IMAGES
from examples.grader.submissions import MISTAKES, Submission, submission
from grader.judge import Finding, judge
from grader.study import read_folder

UNNAMED = {"unexplained", "nearly"}


def judged(submitted: Submission) -> list[Finding]:
    """The findings on a submission, remarks left out."""
    with TemporaryDirectory() as name:
        path = Path(name) / submitted.name
        path.write_text(submitted.text, encoding="utf-8")
        studies = read_folder(path)
    findings = [one for each in studies for one in judge(each, TRAIN_IMAGES).findings]
    return [one for one in findings if one.severity != "remark"]


def blamed(seeds: Iterable[int]) -> dict[int, set[str]]:
    """The severities of the findings on honest submissions that have any, by their seeds."""
    each = ((seed, {one.severity for one in judged(submission(seed))}) for seed in seeds)
    return {seed: severities for seed, severities in each if severities}


def rates(seeds: Iterable[int], mistakes: Iterable[str] = MISTAKES) -> list[int]:
    """How many planted mistakes there are, were found, and were named by the first cause.

    A mistake that changes fewer than three figures is left out.
    """
    counts = [0, 0, 0]
    for planted in (submission(seed, mistake) for mistake in mistakes for seed in seeds):
        if planted.wrong > 2:
            findings = judged(planted)
            here = [one for one in findings if one.quantity == planted.column]
            named = bool(here) and here[0].cause not in UNNAMED
            counts = [n + one for n, one in zip(counts, (1, bool(findings), named), strict=True)]
    return counts


if __name__ == "__main__":
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    print(f"of {number:,} honest submissions these have a finding: {blamed(range(number))}")
    print("of {} with one mistake {} were found and {} named".format(*rates(range(12))))
