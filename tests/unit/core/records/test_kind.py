"""What a record may not be: damaged, unsigned, another one's, impossible, newer."""

import copy
import json
import os
from functools import reduce
from operator import getitem
from pathlib import Path

import pytest

from examples import damage
from scaling.core.errors import UserError
from scaling.core.records.kinds import KINDS
from scaling.core.records.run import RUN

STUDIES = Path(__file__).parents[4] / "studies"
INT8 = STUDIES / "quantization-cifar10/quantization/seed~0"
CELL = "recipe~tuned/strategy~ddp/gpus~2/batch_size~128/seed~0/run.json"
RUN_PATH = STUDIES / "h200x2/runs" / CELL
PATHS = [
    RUN_PATH,
    STUDIES / "h200x4/convergence/remedy~none/global_batch~2048/runs.json",
    STUDIES / "h200x2/interconnect/gpus~2/sweep.json",
    STUDIES / "h200x2/peaks/peaks.json",
    STUDIES / "h200x2/quantization/seed~0/stages.json",
    INT8 / "variant~mistake-bias_scale/quantization.json",
    INT8 / "peers.json",
]
BY_NAME = {path.name: path for path in PATHS}
MUTANTS = int(os.environ.get("MUTANTS", "20"))
"""Of each record and kind of test; 290 of each of seven records are 2,000."""


def said_of(action, *arguments):
    """The sentence by which an action is refused, None where it is not."""
    try:
        action(*arguments)
    except UserError as error:
        return str(error)
    return None


@pytest.mark.parametrize("name", BY_NAME)
def test_a_damaged_record_is_refused_or_the_same(name, tmp_path):
    kind, path, mutant = KINDS[name], BY_NAME[name], tmp_path / name
    written = kind.read(path)
    kind.write(mutant, written)
    assert mutant.read_bytes() == path.read_bytes()
    for content in damage.document_texts(json.loads(mutant.read_text()), MUTANTS, seed=0):
        mutant.write_bytes(content)
        if said := said_of(kind.read, mutant):
            assert str(mutant) in said and "\n" not in said
        else:
            assert kind.read(mutant) == written


@pytest.mark.parametrize("name", BY_NAME)
def test_values_that_are_strange_are_written_in_no_way_that_cannot_be_read(name, tmp_path):
    kind, mutant, refused = KINDS[name], tmp_path / name, 0
    for content in damage.values(kind.read(BY_NAME[name]), MUTANTS, seed=1):
        if said := said_of(kind.write, mutant, content):
            refused += str(mutant) in said
        else:
            assert kind.read(mutant) == content
    assert refused


def test_a_record_without_version_and_checksum_is_to_be_migrated(tmp_path):
    (tmp_path / "run.json").write_text(json.dumps(RUN.read(RUN_PATH)))
    with pytest.raises(UserError, match=r"has no version and sha256.*study_migrate\.py \(make mi"):
        RUN.read(tmp_path / "run.json")


def of_epochs(**changes):
    return lambda record: [row.update(changes) for row in record["epochs"]]


IMPOSSIBLE = {
    r"epochs\[0\].seconds: .* greater than 0": of_epochs(seconds=-0.24),
    "waits for longer than it takes": of_epochs(loader_seconds=99.0),
    r"epochs\[0\].seconds: .* valid number": of_epochs(seconds="0.24"),
    r"epochs\[0\].seconds: .* finite|epochs\[0\].seconds: .* number": of_epochs(
        seconds=float("nan")
    ),
    r"epochs\[0\].rank: .* valid integer": of_epochs(rank=0.5),
    "epochs or their ranks are missing": of_epochs(rank=0),
    "other iterations than its samples": of_epochs(samples=12_500),
    "has not the samples that the training set has": of_epochs(samples=12_500, iterations=98),
    r"epochs\[0\].role: .* 'warmup', 'measured' or": of_epochs(role="rested"),
    r"epochs\[0\].train_accuracy: .* less than or equal to 1": of_epochs(train_accuracy=1.01),
    r"epochs\[0\].watts: Extra inputs are not": of_epochs(watts=1.0),
    "is not finite, and the status ok": of_epochs(train_loss=None),
    "status ok without a measured epoch": of_epochs(role="warmup"),
    "its gpus is 4, that of its folder 2": lambda record: record["cell"].update(gpus=4),
    "its repeat is 1, that of its folder 0": lambda record: record["cell"].update(repeat=1),
    "status oom without its message": lambda record: record.update(status="oom"),
    "status: Input should be 'ok'": lambda record: record.update(status="fine"),
    "has other iterations": lambda record: record.update(
        epochs=[row for row in record["epochs"] if row["rank"] == 0]
    ),
    "are missing, twice, or out of order": lambda record: record["epochs"].pop(),
    "are missing, .* out of order": lambda record: record["epochs"].reverse(),
    r"device_time\[0\].busy_seconds": lambda record: record["device_time"][0].update(
        busy_seconds=-1.0
    ),
    "cell: Field required": lambda record: record.pop("cell"),
    "memory.peak_bytes: Field required": lambda record: record["memory"].pop("peak_bytes"),
    r"epochs\[0\].samples: Field required": lambda record: record["epochs"][0].pop("samples"),
    "training.horizontal_flip: .* boolean": lambda record: record["training"].update(
        horizontal_flip=1
    ),
    "environment.hosts: .* array": lambda record: record["environment"].update(hosts="a"),
    "epochs that take longer than the run": lambda record: record.update(run_seconds=0.1),
    "another settling than": lambda record: record["settling"].update(drift=0.5),
    "a start that is not its phases": lambda record: record["startup"].update(total=0.5),
    "fewer epochs than asked for": lambda record: record["training"].update(measured_epochs=99),
    "gradients not as many as parameters": lambda record: record["model"].update(parameters=10),
    "not every rank's weights": lambda record: record["model"]["parameters_sha256"].pop(),
    "instruments of other ranks": lambda record: record["in_memory"].pop(),
    "unlike repeats of ranks": lambda record: record["in_memory"][0].update(iterations=1),
    "environment.ended: .* datetime": lambda record: record["environment"].update(ended="x"),
    "run_seconds: Input should be greater": lambda record: record.update(run_seconds=-1.0),
}


@pytest.mark.parametrize("sentence", IMPOSSIBLE)
def test_what_no_run_reports_is_not_written(sentence, tmp_path):
    made = copy.deepcopy(RUN.read(RUN_PATH))
    IMPOSSIBLE[sentence](made)
    with pytest.raises(UserError, match=rf"run\.json is not written.*({sentence})"):
        RUN.write(tmp_path / CELL, made)
    assert not (tmp_path / CELL).exists()


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        ("sweep.json", ["gpus"], -2),
        ("sweep.json", ["rows", 0, "seconds"], []),
        ("peaks.json", ["rows", -1, "copy_bytes"], -4_000_000),
        ("runs.json", ["result", "runs", 0, "epochs"], []),
        ("runs.json", ["result", "runs", 0, "updates"], 7),
        ("runs.json", ["result", "runs", 0, "learning_rate"], 7.0),
        ("quantization.json", ["gained"], 7),
        ("quantization.json", ["classes", "labels"], "eJwDAAAAAAE="),
        ("quantization.json", ["classes", "labels"], "x"),
        ("quantization.json", ["layers", 0, "packed_bytes"], 7),
        ("peers.json", ["ours", "int8", "lost"], 7),
        ("stages.json", ["histograms", 0, "layer"], "x"),
        ("stages.json", ["histograms", 0, "int8", "counts"], [1]),
        ("stages.json", ["stages", 0, "accuracy_percent"], 101.0),
        ("peers.json", ["peers", 0, "status"], "slow"),
    ],
)
def test_what_no_machine_does_is_refused(name, place, value, tmp_path):
    document = KINDS[name].read(BY_NAME[name])
    *way, last = place
    reduce(getitem, way, document)[last] = value
    with pytest.raises(UserError, match=rf"{name} is not written, as no record of "):
        KINDS[name].write(tmp_path / name, document)


def test_a_run_that_ended_when_one_rank_had_reported_is_a_record(tmp_path):
    record = RUN.read(RUN_PATH)
    ended = {"status": "oom", "message": "no room", "epochs": record["epochs"][:1]}
    RUN.write(tmp_path / "run.json", record | ended)
    assert RUN.read(tmp_path / "run.json")["epochs"] == record["epochs"][:1]


def test_a_newer_record_is_left_to_newer_code(tmp_path, monkeypatch):
    record = RUN.read(RUN_PATH)
    monkeypatch.setattr("scaling.core.records.kind.VERSION", 2)
    RUN.write(tmp_path / "run.json", record)
    monkeypatch.undo()
    with pytest.raises(UserError, match=r"run\.json has another version than 1: read it by newer"):
        RUN.read(tmp_path / "run.json")
