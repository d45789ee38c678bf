"""The script that trains techniques: what it writes, what it keeps, what it refuses."""

import json

import pytest

import convergence_train
from examples.small_convergence import images
from scaling.convergence.experiment import losses
from scaling.convergence.plan import choose
from scaling.core import files
from scaling.core.errors import UserError
from scaling.core.records.convergence import convergence_path
from scaling.core.records.kind import DATASET
from scaling.data import dataset

OPTIONS = [
    *("--device", "cpu", "--reference-batch", "8", "--gpus", "2", "--epochs", "1"),
    *("--factors", "0.5", "1", "--seeds", "0", "1", "--model-width", "1"),
]


@pytest.fixture
def train(tmp_path):
    """A function that trains remedies on 43 images and gives the folder of the records."""
    data = images()
    dataset.save(data, tmp_path / "images.npz")
    DATASET.write(tmp_path / "manifest.json", dataset.manifest(data, "synthetic", "noise"))

    def run(remedies, *global_batches, options=()):
        places = {"dataset": "images.npz", "manifest": "manifest.json", "records": "records"}
        places["cache"] = "trained"
        told = [text for key, name in places.items() for text in (f"--{key}", str(tmp_path / name))]
        told += ["--remedies", json.dumps(remedies), "--global-batches", *map(str, global_batches)]
        convergence_train.main([*told, *OPTIONS, *options])
        return tmp_path / "records"

    return run


def test_each_remedy_and_batch_has_its_sweep_and_the_chosen_rates_seeds(train, capsys):
    remedies = {"none": {}, "linear": {"scaling": "linear"}}
    records = train(remedies, 8, 16, options=["--precision", "tf32"])
    found = files.read_json(convergence_path(records, "linear", 16))
    assert found["training"]["precision"] == "float32"  # A CPU has no TF32.
    assert (found["status"], found["options"]["scaling"]) == ("ok", "linear")
    result = found["result"]
    assert result["gpus"] == 2
    runs = [(run["factor"], run["seed"], run["chosen"]) for run in result["runs"]]
    best = result["chosen_factor"]
    assert sorted(runs) == sorted([(best, 0, True), (best, 1, True), (1.5 - best, 0, False)])
    sweep = {run["factor"]: run["epochs"][-1]["train_loss"] for run in result["runs"][:2]}
    assert best == min(sweep, key=sweep.get)
    assert result["runs"][0]["updates"] == 3
    # At the reference batch the two remedies are one, and trained once.
    lines = capsys.readouterr().out.splitlines()
    assert sum(line.endswith("shared") for line in lines if line.startswith("linear, ")) >= 3


def test_what_was_trained_is_not_trained_again_by_another_process(train, capsys):
    records = train({"none": {}, "precise": {"precise_batch_norm": True}}, 16)
    found = [files.read_json(convergence_path(records, name, 16)) for name in ("none", "precise")]
    plain, other = (record["result"]["runs"][0]["epochs"][0] for record in found)
    assert plain["train_loss"] == other["train_loss"] and plain["test_loss"] != other["test_loss"]
    capsys.readouterr()
    train({"none": {}}, 16, options=["--seeds", "0", "1", "2"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.endswith("shared") for line in lines] == [True, True, True, False]
    again = files.read_json(convergence_path(records, "none", 16))["result"]["runs"]
    assert again[:3] == found[0]["result"]["runs"]


def test_held_out_images_choose_the_rate_and_all_are_trained_on_afterwards(train):
    options = ["--held-out-images", "11", "--more-factors", "2", "--factors", "2", "4"]
    remedies = {"muon": {"muon": 0.02, "lengths": [2]}}
    records = train(remedies, 8, options=options)
    result = files.read_json(convergence_path(records, "muon", 8))["result"]
    sweep = [run for run in result["runs"] if run["held_out"]]
    assert len(sweep) > 2 and not any(run["chosen"] for run in sweep)
    judged = losses({run["factor"]: run for run in sweep})
    assert result["chosen_factor"] == choose(judged)
    last = {"validation_loss": 0.5, "train_loss": 0.1}
    ends = enumerate(("", "at chance", "not finite"))
    found = losses({at: {"held_out": True, "epochs": [last], "diverged": end} for at, end in ends})
    assert found == {0: 0.5, 1: 0.5, 2: None}
    assert all(run["epochs"][-1]["test_accuracy"] is None for run in sweep)
    assert not any(
        "test" in key and row[key] for run in sweep for row in run["epochs"] for key in row
    )
    seeds = [run for run in result["runs"] if run["chosen"]]
    assert [run["seed"] for run in seeds] == [0, 1]
    # 32 images are left to a sweep, 43 afterwards.
    assert {run["updates"] for run in sweep} == {4} and {run["updates"] for run in seeds} == {6}
    assert [(len(run["epochs"]), run["updates"]) for run in result["longer"]] == [(2, 12)] * 2


def test_a_batch_that_cannot_be_trained_is_a_record_that_says_so_or_refused(train):
    found = files.read_json(convergence_path(train({"none": {}}, 64), "none", 64))
    assert (found["status"], found["result"]) == ("infeasible", None)
    assert "43 training images" in found["message"]
    with pytest.raises(UserError, match="global batch 17 cannot be shared by 2 GPUs"):
        train({"none": {}}, 17)


def test_a_run_that_diverges_ends_and_tells_when(train):
    options = ["--learning-rate", "1e9", "--epochs", "2"]
    records = train({"none": {"factors": [1]}}, 8, options=options)
    (run, _) = files.read_json(convergence_path(records, "none", 8))["result"]["runs"]
    assert run["diverged"] == "not finite"
    assert (run["planned_epochs"], run["planned_updates"]) == (2, 12)
    assert (len(run["epochs"]), run["updates"]) == (1, 6)
    last = run["epochs"][-1]
    assert (last["train_accuracy"], last["test_accuracy"]) == (None, None)
