"""What a record may not be: damaged, another one's, impossible, newer."""

import json
import os
from pathlib import Path

import pytest

from examples import damage
from scaling.core.errors import UserError
from scaling.core.records import convergence, machine, quantization, run

STUDIES = Path(__file__).parents[4] / "studies"
CELL = "recipe~tuned/strategy~ddp/gpus~2/batch_size~128/seed~0/run.json"
REMEDY = "remedy~none/global_batch~2048/runs.json"
RUN_PATH = STUDIES / "h200x2/runs" / CELL
RECORDS = [
    (run.RUN, RUN_PATH),
    (convergence.CONVERGENCE, STUDIES / "h200x4/convergence" / REMEDY),
    (machine.SWEEP, STUDIES / "h200x2/interconnect/gpus~2/sweep.json"),
    (machine.PEAKS, STUDIES / "h200x2/peaks/peaks.json"),
    (quantization.STAGED, STUDIES / "h200x2/quantization/seed~0/stages.json"),
    (quantization.BACKENDS, STUDIES / "quantization-cifar10/quantization/seed~0/peers.json"),
]
IDS = [path.name for _, path in RECORDS]
MUTANTS = int(os.environ.get("MUTANTS", "20"))
"""Of each record and kind of test; 340 of each of six records are 2,000."""


def outcomes(kind, mutant, document, seed):
    """Of each damaged `document` what was said of it, and what was read; one of them is None."""
    for content in damage.document_texts(document, MUTANTS, seed):
        mutant.write_bytes(content)
        try:
            yield None, kind.read(mutant)
        except UserError as error:
            yield str(error), None


@pytest.mark.parametrize(("kind", "path"), RECORDS, ids=IDS)
def test_a_damaged_record_is_refused_or_the_same(kind, path, tmp_path):
    written, mutant = kind.read(path), tmp_path / path.name
    kind.write(mutant, written)
    assert kind.read(mutant) == written
    for said, read in outcomes(kind, mutant, json.loads(mutant.read_text()), seed=0):
        assert read == written if said is None else (str(mutant) in said and "\n" not in said)


@pytest.mark.parametrize(("kind", "path"), RECORDS, ids=IDS)
def test_damage_of_one_without_a_checksum_is_no_traceback(kind, path, tmp_path):
    mutant = tmp_path / path.name
    found = list(outcomes(kind, mutant, json.loads(path.read_text()), seed=1))
    assert any(said for said, _ in found)
    assert all(str(mutant) in said for said, _ in found if said)


def of_epochs(**changes):
    return lambda record: [row.update(changes) for row in record["epochs"]]


IMPOSSIBLE = {
    "epochs.seconds|impossible": of_epochs(seconds=-0.24),
    "epochs.loader_seconds": of_epochs(loader_seconds=-1e-9),
    "waits for longer than it takes": of_epochs(loader_seconds=99.0),
    "Out of range float": of_epochs(seconds=float("nan")),
    "epochs.rank": of_epochs(rank=0.5),
    "epochs or their ranks are missing": of_epochs(rank=0),
    "other iterations than its samples": of_epochs(samples=12_500),
    "has not the samples that the training set has": of_epochs(samples=12_500, iterations=98),
    "epochs.role": of_epochs(role="rested"),
    "epochs.train_accuracy": of_epochs(train_accuracy=1.01),
    "is not finite, and the status ok": of_epochs(train_loss=None),
    "status ok without a measured epoch": of_epochs(role="warmup"),
    "its gpus is 4, that of its folder 2": lambda record: record["cell"].update(gpus=4),
    "its strategy is dp, that of its f": lambda record: record["cell"].update(strategy="dp"),
    "its repeat is 1, that of its folder 0": lambda record: record["cell"].update(repeat=1),
    "status oom without its message": lambda record: record.update(status="oom"),
    "status: Input should be 'ok'": lambda record: record.update(status="fine"),
    "other iterations than its samples  *|has other": lambda record: record.update(
        epochs=[row for row in record["epochs"] if row["rank"] == 0]
    ),
    "are missing, twice, or out of order": lambda record: record["epochs"].pop(),
    "are missing, .* out of order": lambda record: record["epochs"].reverse(),
    "device_time.busy_seconds": lambda record: record["device_time"][0].update(busy_seconds=-1.0),
    "of another kind": lambda record: record.pop("cell"),
    "memory has no peak_bytes": lambda record: record["memory"].pop("peak_bytes"),
    "epochs has no samples": lambda record: record["epochs"][0].pop("samples"),
}


@pytest.mark.parametrize("sentence", IMPOSSIBLE)
def test_what_no_run_reports_is_refused_without_a_checksum_too(sentence, tmp_path):
    path = tmp_path / CELL
    path.parent.mkdir(parents=True)
    made = json.loads(RUN_PATH.read_text())
    IMPOSSIBLE[sentence](made)
    path.write_text(json.dumps(made))
    with pytest.raises(UserError, match=rf"run\.json is .*({sentence})"):
        run.RUN.read(path)


@pytest.mark.parametrize(
    ("kind", "path", "place", "value"),
    [
        (machine.SWEEP, RECORDS[2][1], ["gpus"], -2),
        (machine.SWEEP, RECORDS[2][1], ["rows", 0, "seconds"], []),
        (machine.PEAKS, RECORDS[3][1], ["rows", -1, "copy_bytes"], -4_000_000),
        (machine.PEAKS, RECORDS[3][1], ["rows", 0, "seconds", 3], -1e-3),
        (convergence.CONVERGENCE, RECORDS[1][1], ["result", "runs", 0, "epochs"], []),
        (quantization.STAGED, RECORDS[4][1], ["stages", 0, "accuracy_percent"], 101.0),
    ],
)
def test_what_no_machine_does_is_refused(kind, path, place, value, tmp_path):
    document = json.loads(path.read_text())
    inside = document
    for key in place[:-1]:
        inside = inside[key]
    inside[place[-1]] = value
    (tmp_path / path.name).write_text(json.dumps(document))
    with pytest.raises(UserError, match=rf"{path.name} is no sound record of .*\("):
        kind.read(tmp_path / path.name)


def test_a_run_that_ended_when_one_rank_had_reported_is_a_record(tmp_path):
    record = run.RUN.read(RUN_PATH)
    ended = {"status": "oom", "message": "no room", "epochs": record["epochs"][:1]}
    run.RUN.write(tmp_path / "run.json", record | ended)
    assert run.RUN.read(tmp_path / "run.json")["epochs"] == record["epochs"][:1]


def test_a_newer_record_is_left_to_newer_code(tmp_path, monkeypatch):
    record = run.RUN.read(RUN_PATH)
    monkeypatch.setattr("scaling.core.records.kind.VERSION", 2)
    run.RUN.write(tmp_path / "run.json", record)
    monkeypatch.undo()
    with pytest.raises(UserError, match=r"run\.json has another version than 1: read it by newer"):
        run.RUN.read(tmp_path / "run.json")


def test_what_is_impossible_is_not_written(tmp_path):
    record = run.RUN.read(RUN_PATH)
    with pytest.raises(UserError, match=r"is not written.*run_seconds: Input should be greater"):
        run.RUN.write(tmp_path / "run.json", record | {"run_seconds": -1.0})
    assert not list(tmp_path.iterdir())
