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


@pytest.mark.parametrize(
    ("ends", "ending", "cause"),
    [
        (2, ProcessResult(1, timed_out=False), "exit status 1"),
        (2, ProcessResult(-9, timed_out=True), "its time limit"),
        (1, ProcessResult(0, timed_out=False), "exit status 0"),
    ],
)
def test_a_measurement_that_lost_a_process_is_one_clear_sentence(monkeypatch, ends, ending, cause):
    lines = by_kind({"kind": "end", "rank": rank} for rank in range(ends))
    monkeypatch.setattr(measure, "launch_ranks", lambda *_: replace(ending, lines=lines))
    options = Probe(output=Path("out.json"), matrix_sizes=[8], copy_bytes=1, device="cpu")
    about = {"name": "the sweep over 2 GPUs", "advice": "; ask for less", "processes": 2}
    sentence = f"the sweep over 2 GPUs ended early with {cause}: see the log above; ask for less"
    with pytest.raises(UserError, match=sentence):
        measure.run("sweep.py", [], options, **about)


def test_what_a_killed_measurement_left_beside_its_output_goes_at_the_next_start(tmp_path):
    (tmp_path / ".run.ranks.killed").mkdir()
    (tmp_path / ".other.ranks.killed").mkdir()
    command = [sys.executable, "-c", "raise SystemExit(3)"]
    ending = measure.launch_ranks(command, tmp_path / "run.json", "cpu", 1, 1, 60)
    assert (ending.returncode, any(ending.lines.values())) == (3, False)
    assert [path.name for path in tmp_path.iterdir()] == [".other.ranks.killed"]
