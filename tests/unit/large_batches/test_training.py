"""A technique's training: micro-batches in the place of ranks, its options, its statistics."""

from dataclasses import replace

import pytest
import torch

from examples.small_trainings import (
    GPUS,
    RATES,
    RUN,
    STUDY,
    distance,
    experiment,
    train_by_torch,
    trained,
    with_options,
)
from scaling.large_batches import experiment as module
from training_runs import in_ranks


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Several take longer, more so where others compute too."""
    torch.set_num_threads(1)


def test_micro_batches_train_like_ddp_ranks(tmp_path):
    files = str(tmp_path / "rendezvous"), str(tmp_path / "state.pt")
    in_ranks(train_by_torch, *files, count=GPUS)
    by_ddp = torch.load(tmp_path / "state.pt")
    found, _ = trained(RUN)
    assert found.keys() == by_ddp.keys() and distance(found, by_ddp) < 1e-5
    # The same global batches, each normalised as a whole, are another training.
    whole, _ = trained(RUN, experiment(STUDY.model_copy(update={"gpus": 1})))
    assert distance(whole, by_ddp) > 1e-3


def test_each_option_of_a_run_changes_it():
    plain, (epoch,) = trained(RUN)
    for run in (
        with_options(zero_gamma=True),
        with_options(decay_batch_norm=False),
        with_options(label_smoothing=0.2),
        with_options(lars=0.01),
        with_options(nesterov=True),
        with_options(muon=1.0),
        replace(with_options(muon=1.0), rest=(0.0,) * 3),
        replace(RUN, momentum=0.5),
        replace(RUN, rates=tuple(reversed(RATES))),
        replace(RUN, seed=5),
    ):
        assert distance(trained(run)[0], plain) > 1e-7, run
    again, (same,) = trained(RUN)
    assert distance(plain, again) == 0 and same == epoch


def test_evaluation_uses_statistics_of_the_training_images(monkeypatch):
    made, other = experiment(), experiment()
    _, (epoch,) = trained(RUN, made)
    monkeypatch.setattr(module, "update_bn", lambda images, model: None)
    _, (with_running,) = trained(RUN, other)
    # Three updates leave the running statistics far from those of the images.
    assert epoch["train_loss"] == with_running["train_loss"]
    assert epoch["test_loss"] != with_running["test_loss"]
    # After an evaluation they are what the training left.
    norms = [one.model.stem[1].running_mean for one in (made, other)]
    assert torch.equal(*norms)
