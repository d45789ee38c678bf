"""The harness of measurements: what it makes of the processes' ends and reports."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from scaling.core.errors import UserError
from scaling.launch import measure
from scaling.launch.launcher import ProcessResult
from scaling.launch.measure import Probe
from scaling.launch.rank_log import by_kind

START = {"kind": "start", "host": "node01", "slurm_gpus": [], "cuda": None, "nccl": None}
WELL = ProcessResult(0, timed_out=False, seconds=2.5)
OPTIONS = Probe(output=Path("out.json"), matrix_sizes=[8], copy_bytes=1, device="cpu")


@pytest.fixture
def ended(monkeypatch):
    """A function that measures with processes that ended so, and said these lines."""

    def measured(ending, *lines, ends=1):
        said = [START | {"rank": 0}, *lines, *({"kind": "end", "rank": n} for n in range(ends))]
        result = replace(ending, lines=by_kind(said))
        monkeypatch.setattr(measure, "launch_ranks", lambda *_: result)
        about = {"name": "the sweep over 2 GPUs", "advice": "; ask for less", "processes": 2}
        return measure.run("sweep.py", [], OPTIONS, **about)

    return measured


@pytest.mark.parametrize(
    ("ends", "ending", "cause"),
    [
        (2, ProcessResult(1, timed_out=False), "exit status 1"),
        (2, ProcessResult(-9, timed_out=True), "its time limit"),
        (1, WELL, "exit status 0"),
    ],
)
def test_a_measurement_that_lost_a_process_is_one_clear_sentence(ended, ends, ending, cause):
    sentence = f"the sweep over 2 GPUs ended early with {cause}: see the log above; ask for less"
    with pytest.raises(UserError, match=sentence):
        ended(ending, ends=ends)


def test_reports_are_told_by_their_kind_and_the_environment_by_who_saw_it(ended):
    rows = [{"kind": "row", "rank": 0, "seconds": second} for second in (3, 1)]
    found = ended(WELL, *rows, ends=2)
    assert found.of("row") == [{"seconds": 3}, {"seconds": 1}]
    assert found.seconds == 2.5
    assert found.environment["hosts"] == ["node01"] and found.environment["cuda"] is None
    assert found.environment["ended"] and found.environment["device"] == "cpu"


def test_what_a_killed_measurement_left_beside_its_output_goes_at_the_next_start(tmp_path):
    (tmp_path / ".run.ranks.killed").mkdir()
    (tmp_path / ".other.ranks.killed").mkdir()
    command = [sys.executable, "-c", "raise SystemExit(3)"]
    ending = measure.launch_ranks(command, tmp_path / "run.json", "cpu", 1, 1, 60)
    assert (ending.returncode, any(ending.lines.values())) == (3, False)
    assert [path.name for path in tmp_path.iterdir()] == [".other.ranks.killed"]
