"""The harness of measurements: what it makes of the processes' ends and reports."""

import sys

import pytest

from scaling.core.errors import UserError
from scaling.core.training_options import Limits
from scaling.launch import measure
from scaling.launch.measure import Measurement


@pytest.mark.parametrize(
    ("program", "cause"),
    [
        ("raise SystemExit(3)", "exit status 3"),
        ("time.sleep(60)", "its time limit"),
        ("", "exit status 0"),
    ],
)
def test_a_measurement_that_lost_a_process_is_one_clear_sentence(tmp_path, program, cause):
    script = tmp_path / "sweep.txt"
    script.write_text(f"import time; {program}")
    output, limit = tmp_path / "out.json", 1 if "sleep" in program else 60
    options = Measurement(output=output, gpus=1, device="cpu", time_limit_seconds=limit)
    sentence = f"the sweep over 2 GPUs ended early with {cause}: see the log above; ask for less"
    about = {"name": "the sweep over 2 GPUs", "advice": "; ask for less", "processes": 2}
    with pytest.raises(UserError, match=sentence):
        measure.run(str(script), [], options, **about)


def test_what_a_killed_measurement_left_beside_its_output_goes_at_the_next_start(tmp_path):
    (tmp_path / ".run.ranks.killed").mkdir()
    (tmp_path / ".other.ranks.killed").mkdir()
    command = [sys.executable, "-c", "raise SystemExit(3)"]
    ending = measure.launch_ranks(command, tmp_path / "run.json", "cpu", 1, Limits())
    assert (ending.returncode, any(ending.lines.values())) == (3, False)
    assert [path.name for path in tmp_path.iterdir()] == [".other.ranks.killed"]
