"""Techniques: records and errors of their script, and micro-batches that stand for ranks."""

import pytest
import torch

import convergence_train
from examples import small_trainings as small
from examples.small_trainings import PLAIN, distance, experiment, trained
from scaling.core import files
from scaling.core.records.kind import DATASET
from scaling.data import dataset
from scaling.large_batches import experiment as module
from scaling.large_batches.plan import choose, loss
from training_runs import in_ranks

STUDY = {"reference_batch": 8, "gpus": 2, "epochs": 1, "factors": [0.5, 1], "seeds": [0, 1]}


@pytest.fixture
def train(tmp_path):
    """Return a function that trains a technique on 44 images, and returns its record."""
    data = small.images()
    dataset.save(data, tmp_path / "images.npz")
    DATASET.write(tmp_path / "manifest.json", dataset.manifest(data, "synthetic", "noise"))

    def run(technique, global_batch, **options):
        places = {"images": tmp_path / "images.npz", "manifest": tmp_path / "manifest.json"}
        asked = {"study": STUDY | {"model_width": 1} | options, "technique": technique}
        asked |= {"global_batch": global_batch, "remedy": "mine", "device": "cpu"}
        convergence_train.main(**asked, **places, output=tmp_path / "runs.json")
        return files.read_json(tmp_path / "runs.json")

    return run


def test_technique_has_a_sweep_and_seeds_at_its_rate(train):
    found = train({"scaling": "linear"}, 16, precision="tf32")
    assert found["training"]["precision"] == "float32"  # A CPU has no TF32.
    assert (found["status"], found["remedy"]) == ("ok", "mine")
    assert found["options"]["scaling"] == "linear"
    result = found["result"]
    assert result["gpus"] == 2
    runs = [(run["factor"], run["seed"], run["chosen"]) for run in result["runs"]]
    best = result["chosen_factor"]
    assert sorted(runs) == sorted([(best, 0, True), (best, 1, True), (1.5 - best, 0, False)])
    sweep = {run["factor"]: run["epochs"][-1]["train_loss"] for run in result["runs"][:2]}
    assert best == min(sweep, key=sweep.get)
    assert result["runs"][0]["updates"] == 3


def test_held_out_images_choose_the_rate_then_all_train(train):
    options = {"held_out_images": 11, "more_factors": 2, "factors": [2, 4]}
    result = train({"muon": 0.02}, 8, **options)["result"]
    sweep = [run for run in result["runs"] if run["held_out"]]
    assert len(sweep) > 2 and not any(run["chosen"] for run in sweep)
    assert result["chosen_factor"] == choose({run["factor"]: loss(run) for run in sweep})
    rows = [row for run in sweep for row in run["epochs"]]
    assert not any("test" in key and row[key] for row in rows for key in row)
    seeds = [run for run in result["runs"] if run["chosen"]]
    assert [run["seed"] for run in seeds] == [0, 1]
    # 33 images are left to a sweep, 44 afterwards.
    assert {run["updates"] for run in sweep} == {5} and {run["updates"] for run in seeds} == {6}


def test_batch_larger_than_the_dataset_is_recorded(train):
    found = train({}, 64)
    assert (found["status"], found["result"]) == ("infeasible", None)
    assert "44 training images" in found["message"]


def test_diverging_run_ends_and_records_its_epoch(train):
    found = train({"factors": [1]}, 8, learning_rate=1e9, epochs=2)
    (run, _) = found["result"]["runs"]
    assert run["diverged"] == "not finite"
    assert (run["planned_epochs"], run["planned_updates"]) == (2, 12)
    assert (len(run["epochs"]), run["updates"]) == (1, 6)
    last = run["epochs"][-1]
    assert (last["train_accuracy"], last["test_accuracy"]) == (None, None)


def test_micro_batches_train_like_ddp_ranks(tmp_path):
    files = str(tmp_path / "rendezvous"), str(tmp_path / "state.pt")
    in_ranks(small.train_by_torch, *files, count=small.GPUS)
    by_ddp = torch.load(tmp_path / "state.pt")
    found, _ = trained()
    assert found.keys() == by_ddp.keys() and distance(found, by_ddp) < 1e-5
    # The same global batches, each normalised as a whole, are another training.
    whole, _ = trained(experiment(small.STUDY.model_copy(update={"gpus": 1})))
    assert distance(whole, by_ddp) > 1e-3


def test_option_of_a_run_changes_its_weights():
    plain, (epoch,) = trained()
    for changes in (
        {"zero_gamma": True},
        {"decay_batch_norm": False},
        {"label_smoothing": 0.2},
        {"lars": 0.01},
        {"nesterov": True},
        {"muon": 1.0},
        {"muon": 1.0, "rates": [(rate, 0.0) for rate, _ in PLAIN]},
        {"momentum": 0.5},
        {"rates": PLAIN[::-1]},
        {"seed": 5},
    ):
        assert distance(trained(**changes)[0], plain) > 1e-7, changes
    again, (same,) = trained()
    assert distance(plain, again) == 0 and same == epoch


def test_evaluation_uses_statistics_of_the_training_images(monkeypatch):
    made, other = experiment(), experiment()
    _, (epoch,) = trained(made)
    monkeypatch.setattr(module, "update_bn", lambda images, model: None)
    _, (with_running,) = trained(other)
    # Three updates leave the running statistics far from those of the images.
    assert epoch["train_loss"] == with_running["train_loss"]
    assert epoch["test_loss"] != with_running["test_loss"]
    # After an evaluation they are what the training left.
    norms = [one.model.stem[1].running_mean for one in (made, other)]
    assert torch.equal(*norms)
