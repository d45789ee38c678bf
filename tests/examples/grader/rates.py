"""How often an audit is right: counts of generated submissions.

`PYTHONPATH=workflow/scripts:tests python -m examples.grader.rates` takes minutes.
"""

from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd
import yaml

from examples.grader.planted import KINDS, planted
from examples.grader.published_study import TRAIN_IMAGES, write
from examples.grader.submissions import Submission, honest
from grader.findings import judge
from grader.study import read_folder


def judged(made: Submission, ring: bool = False) -> pd.DataFrame:
    """The findings on a submission."""
    stated = {"one": {"definitions": {"utilization_percent": made.peaks}}} if made.peaks else {}
    with TemporaryDirectory() as name:
        folder = write(Path(name), made.text)
        (folder / "studies.yaml").write_text(yaml.safe_dump(stated))
        (source,) = read_folder(folder)
    return judge(source, TRAIN_IMAGES, ring)


def blamed(seeds: Iterable[int]) -> list[int]:
    """The seeds whose honest, noisy submission has an error or a warning."""
    each = ((seed, judged(honest(seed, noisy=True))["severity"]) for seed in seeds)
    return [seed for seed, severity in each if (severity != "info").any()]


def rates(numbers: Iterable[int], seed: int) -> pd.Series:
    """Shares of planted errors: found at all, placed right, and named, of those with a name."""
    rows = []
    for number in numbers:
        made, where, names = planted(number, seed)
        found = judged(made)
        gaps = {"missing_cell", "blank_figure"} & names
        found = found[(found["severity"] != "info") | found["cause"].isin(gaps)]
        first = found[found["number"] == found["number"].min()]
        cells = set(zip(first["gpus"], first["batch_size"], strict=True))
        causes = set(found["cause"].str.split(";").explode())
        row = {"found": len(found) > 0, "placed": bool(cells) and cells <= where}
        rows.append(row | {"named": bool(names & causes) if names else None})
    return pd.DataFrame(rows).astype(float).mean()


if __name__ == "__main__":
    print(f"{len(blamed(range(10_000)))} of 10,000 honest submissions have an error or a warning")
    print(f"of {5 * len(KINDS)} with one error, {len(KINDS)} kinds:")
    print(rates(range(5 * len(KINDS)), seed=7).to_string())
