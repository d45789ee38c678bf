"""How long a study takes is foreseen by records of what is most alike."""

import json
from pathlib import Path

import pytest
import yaml

from scaling.core import environment
from scaling.core.grid import Cell
from scaling.terminal import estimate

ROOT = Path(__file__).parents[3]
CONFIG = {
    "training": {"warmup_epochs": 1, "measured_epochs": 3},
    "time_to_accuracy": {"epochs": 10},
}


def place(batch_size, seed=0, recipe="plain"):
    return Cell(recipe, "ddp", 1, batch_size, seed).record_path(Path("runs"))


def durations(folder, *records, config=CONFIG):
    """What records tell, each a place, its start and end in seconds and those of its epochs."""
    for record, start, end, epochs in records:
        rows = [{"epoch": n, "rank": 0, "seconds": s} for n, s in enumerate(epochs, start=1)]
        ends = {
            key: f"2026-01-01T00:{value // 60:02d}:{value % 60:02d}+00:00"
            for key, value in (("started", start), ("ended", end))
        }
        path = folder / record
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps({"environment": ends, "epochs": rows}))
    return estimate.Durations(folder, config)


def test_a_cell_takes_what_it_took_from_another_seed_with_the_epochs_that_are_asked_for(tmp_path):
    # 20 s and 30 s, with 4 epochs of 2 and 5 s; 3 s lie between the two.
    made = durations(tmp_path, (place(32), 0, 20, [2.0] * 4), (place(128), 23, 53, [5.0] * 4))
    known = {estimate.HERE: made}
    assert estimate.seconds(place(32, seed=1), known) == (23, estimate.HERE)
    assert estimate.seconds(place(512), known) == (25 + 3, estimate.HERE)
    # 10 s of epochs at least after the first: 5 of 2 s, two more than there were.
    longer = {"training": CONFIG["training"] | {"measured_seconds": 10.0}}
    more = {estimate.HERE: estimate.Durations(tmp_path, CONFIG | longer)}
    assert estimate.seconds(place(32), more)[0] == 20 + 2 * 2 + 3
    assert estimate.seconds(Path("peaks/peaks.json"), known)[0] == estimate.GUESSED_SECONDS


def test_a_clock_that_was_set_back_makes_no_duration_negative(tmp_path):
    back = tmp_path / place(32)
    known = {estimate.HERE: durations(tmp_path, (place(32), 500, 20, [2.0] * 4))}
    assert estimate.seconds(place(32), known)[0] == estimate.GUESSED_SECONDS
    back.write_text(json.dumps(json.loads(back.read_text()) | {"run_seconds": 12.0}))
    known = {estimate.HERE: estimate.Durations(tmp_path, CONFIG)}
    assert estimate.seconds(place(32), known) == (12, estimate.HERE)
    assert environment.now() <= environment.now()


NEIGHBOURS = ["", "[", "device: cpu\n", "a: !mine 1\n", "model: []\ndevice: cpu\n", "<<: 1\n"]


@pytest.mark.parametrize("text", NEIGHBOURS)
def test_another_study_that_cannot_be_read_is_left_out(text, tmp_path):
    config = yaml.safe_load((ROOT / "config/demo.yaml").read_text())
    for name, written in (("bad", text), ("good", yaml.safe_dump(config))):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.yaml").write_text(written)
    found = estimate.sources(config, tmp_path / "records", tmp_path, on_cpu=True)
    assert list(found) == [estimate.HERE, f"as in {tmp_path / 'good'}"]


def test_what_is_left_follows_what_was_measured_on_the_way(tmp_path):
    stored = durations(
        tmp_path / "stored", (place(32), 0, 10, [1.0] * 4), (place(128), 10, 50, [9.0] * 4)
    )
    known = {estimate.HERE: estimate.Durations(tmp_path / "here", CONFIG), "as elsewhere": stored}
    assert estimate.left([], [place(32), place(128)], known) == 50
    # The first took twice as long here: so will the second, and its own like as long as it did.
    known[estimate.HERE] = durations(tmp_path / "here", (place(32), 0, 20, [2.0] * 4))
    wanted = [place(32, seed=1), place(128)]
    assert estimate.left([place(32)], wanted, known) == pytest.approx(20 + 2 * 40)
