"""How long a study takes is foreseen by records of what is most alike."""

import json
from pathlib import Path

import pytest
import yaml

from scaling.core.grid import Cell
from scaling.terminal.state import GUESSED_SECONDS, HERE, Known

ROOT = Path(__file__).parents[3]


@pytest.fixture
def config():
    """One epoch of warm-up and three measured ones."""
    config = yaml.safe_load((ROOT / "config/demo.yaml").read_text())
    config["training"] |= {"warmup_epochs": 1, "measured_epochs": 3}
    return config


def place(batch_size, seed=0, recipe="plain"):
    return Cell(recipe, "ddp", 1, batch_size, seed).record_path(Path("runs"))


def write(folder, record, end, epochs, **more):
    """A record of so many epochs that began at a full minute, and ended so many seconds later."""
    ends = {"started": "2026-01-01T00:01:00+00:00", "ended": f"2026-01-01T{end}+00:00"}
    rows = [{"epoch": number} for number in range(1, epochs + 1)]
    (folder / record).parent.mkdir(parents=True, exist_ok=True)
    (folder / record).write_text(json.dumps({"environment": ends, "epochs": rows} | more))


def test_a_cell_takes_what_the_most_alike_took_for_as_many_epochs(config, tmp_path):
    write(tmp_path, place(32), "00:01:20", 4)
    write(tmp_path, place(128), "00:01:30", 2)
    known = Known(config, tmp_path, tmp_path, on_cpu=True)
    assert known.seconds(place(32, seed=1)) == (20, HERE)
    assert known.seconds(place(128)) == (60, HERE)
    assert known.seconds(place(512)) == (40, HERE)
    assert known.seconds(Path("peaks/peaks.json"))[0] == GUESSED_SECONDS
    assert known.total([place(32), place(128)]) == 80
    write(tmp_path, place(512), "00:01:50", 4)
    known.add(place(512))
    assert known.seconds(place(512, seed=3)) == (50, HERE)


def test_a_clock_that_was_set_back_makes_no_duration_negative(config, tmp_path):
    write(tmp_path, place(32), "00:00:30", 4)
    assert Known(config, tmp_path, tmp_path, on_cpu=True).seconds(place(32))[0] == GUESSED_SECONDS
    write(tmp_path, place(32), "00:00:30", 4, run_seconds=12.0)
    assert Known(config, tmp_path, tmp_path, on_cpu=True).seconds(place(32)) == (12, HERE)


NEIGHBOURS = ["", "[", "device: cpu\n", "a: !mine 1\n", "model: []\ndevice: cpu\n", "<<: 1\n"]


@pytest.mark.parametrize("text", NEIGHBOURS)
def test_another_study_that_cannot_be_read_is_left_out(config, text, tmp_path):
    for name, written in (("bad", text), ("good", yaml.safe_dump(config))):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.yaml").write_text(written)
    found = Known(config, tmp_path / "records", tmp_path, on_cpu=True).sources
    assert list(found) == [HERE, f"as in {tmp_path / 'good'}"]
