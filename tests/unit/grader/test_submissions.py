"""Generated honest submissions have no error; planted errors are found, placed and named."""

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import example, given, settings
from hypothesis import strategies as st

from examples.grader.planted import planted
from examples.grader.published_study import TRAIN_IMAGES, write
from examples.grader.submissions import honest
from grader.findings import judge
from grader.study import read_folder

PLANTED = 85
"""Each kind once."""


def judged(text, ring=False):
    """The findings on the study of a text."""
    with TemporaryDirectory() as folder:
        (source,) = read_folder(write(Path(folder), text))
    return judge(source, TRAIN_IMAGES, ring)


@given(seed=st.integers(0, 2**32 - 1), ring=st.booleans())
@settings(max_examples=100, deadline=None, derandomize=True)
# Its coarse figures leave the bytes open, its utilization does not.
@example(seed=1008736, ring=False)
# Its figures follow from times with loading and from those without as well.
@example(seed=700008178, ring=False)
# Its bandwidth is by a communication that was rounded and is not printed.
@example(seed=930001476, ring=True)
def test_no_honest_submission_is_called_wrong(seed, ring):
    found = judged(honest(seed).text, ring)
    assert found[found["severity"] != "info"].empty


def test_planted_errors_are_found_in_the_right_cell_and_named():
    found = right = named = nameable = 0
    for number in range(PLANTED):
        error = planted(number, seed=1)
        rows = judged(error.submission.text)
        gaps = {"missing_cell", "blank_figure"} & error.names
        rows = rows[(rows["severity"] != "info") | rows["cause"].isin(gaps)]
        found += len(rows) > 0
        first = rows[rows["number"] == rows["number"].min()]
        cells = set(zip(first["gpus"], first["batch_size"], strict=True))
        right += bool(cells) and cells <= error.cells
        nameable += bool(error.names)
        named += bool(error.names & set(rows["cause"].str.split(";").explode()))
    assert found >= 0.97 * PLANTED and right >= 0.9 * PLANTED and named >= 0.8 * nameable
