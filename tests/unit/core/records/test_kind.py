"""Damaged, impossible and newer records, and records of another run, are refused."""

from pathlib import Path

import dpath
import pytest

from scaling.core.errors import UserError
from scaling.core.records.kind import PEAKS, SWEEP, SYNCHRONIZATION, VARIANT
from scaling.core.records.run import RUN, TECHNIQUE

STUDIES = Path(__file__).parents[4] / "studies"
INT8 = STUDIES / "quantization-cifar10/quantization/seed~0"
CELL = "recipe~tuned/strategy~ddp/gpus~2/batch_size~128/seed~0/repeat~5/run.json"
RUN_PATH = STUDIES / "h200x2/runs" / CELL
PATHS = [
    RUN_PATH,
    STUDIES / "h200x4/convergence/remedy~none/global_batch~2048/runs.json",
    STUDIES / "h200x2/interconnect/gpus~2/sweep.json",
    STUDIES / "h200x2/peaks/peaks.json",
    STUDIES / "h200x4/experiments/gpus~4/synchronization.json",
    INT8 / "variant~mistake-bias_scale/quantization.json",
]
BY_NAME = {path.name: path for path in PATHS}
KINDS = dict(zip(BY_NAME, (RUN, TECHNIQUE, SWEEP, PEAKS, SYNCHRONIZATION, VARIANT), strict=True))


@pytest.mark.parametrize("name", BY_NAME)
def test_record_is_written_as_it_was_read(name, tmp_path):
    KINDS[name].write(tmp_path / name, KINDS[name].read(BY_NAME[name]))
    assert (tmp_path / name).read_bytes() == BY_NAME[name].read_bytes()


ENERGY = {"rank": 0, "role": "measured", "seconds": 2.0, "joules": [None, 1e13]}
ENERGY |= {"power_capped_seconds": None, "counts": "GPU"}
IMPOSSIBLE = [
    ("epochs.0.seconds", -0.24, r"epochs\[0\].seconds is .* greater than"),
    ("epochs.0.seconds", 1e-308, r"epochs\[0\].seconds is .* greater than"),
    ("run_seconds", 1e308, "run_seconds is .* less than"),
    ("epochs.0.train_loss", 1e308, r"epochs\[0\].train_loss is .* less than"),
    ("epochs.0.loader_seconds", 99.0, "waits for longer than it takes"),
    ("epochs.*.rank", 0, "epochs or their ranks are missing"),
    ("dataset.train_images", 12_500, "has not the samples that the training set has"),
    ("epochs.*.role", "warmup", "no epoch is measured"),
    ("energy", [ENERGY], "a GPU takes more than 20,000 W"),
    ("epochs.1.gpu_readings.0.energy_joules", 1e13, "a GPU takes more than 20,000 W"),
    ("run_seconds", 1.0, "run_seconds is less than the seconds of its epochs"),
    ("cell.gpus", 4, "its gpus is 4, that of its folder 2"),
    ("model.parameters_sha256", ["0" * 64], "not every rank's weights"),
]
OF_OTHERS = [
    ("sweep.json", "rows.0.seconds", []),
    ("synchronization.json", "model.buffer_bytes", ...),
    ("peaks.json", "rows.-1.copy_bytes", -4_000_000),
    ("runs.json", "global_batch", 0),
    ("quantization.json", "gained", -7),
]


@pytest.mark.parametrize(
    ("name", "place", "value", "sentence"),
    [*(("run.json", *one) for one in IMPOSSIBLE), *((*one, "") for one in OF_OTHERS)],
)
def test_impossible_record_is_not_written(name, place, value, sentence, tmp_path):
    made = KINDS[name].read(BY_NAME[name])
    if value is ...:
        dpath.delete(made, place, separator=".")
    else:
        dpath.set(made, place, value, separator=".")
    target = tmp_path / CELL if name == "run.json" else tmp_path / name
    with pytest.raises(UserError, match=rf"{name}: invalid record of .*({sentence})"):
        KINDS[name].write(target, made)
    assert not target.exists()


def test_run_with_reports_of_one_rank_is_a_record(tmp_path):
    record = RUN.read(RUN_PATH)
    ended = {"status": "oom", "message": "no room", "epochs": record["epochs"][:1]}
    RUN.write(tmp_path / "run.json", record | ended)
    assert RUN.read(tmp_path / "run.json")["epochs"] == record["epochs"][:1]


def test_newer_record_is_refused(tmp_path, monkeypatch):
    record = RUN.read(RUN_PATH)
    monkeypatch.setattr("scaling.core.records.kind.VERSION", 2)
    RUN.write(tmp_path / "run.json", record)
    monkeypatch.undo()
    with pytest.raises(UserError, match=r"run\.json has another version than 1: read it by newer"):
        RUN.read(tmp_path / "run.json")
