"""Remedies on a GPU: an update that was captured is what its launches give."""

from contextlib import nullcontext
from dataclasses import replace

import pytest
import torch

from examples import small_convergence
from examples.small_convergence import RUN, STUDY, distance, trained, with_options
from scaling.convergence import engine as engine_module
from scaling.convergence.engine import Engine

pytestmark = pytest.mark.skipif(torch.cuda.device_count() == 0, reason="needs a GPU")


@pytest.fixture
def engine(monkeypatch):
    """A function that makes an engine on the GPU whose convolutions give the same sum twice."""

    def make(gpus):
        made = small_convergence.engine(replace(STUDY, gpus=gpus), "cuda:0")
        monkeypatch.setattr(engine_module, "algorithm_search", lambda on: nullcontext())
        monkeypatch.setattr(torch.backends.cudnn, "deterministic", True)
        return made

    return make


@pytest.mark.parametrize("gpus", [1, 2])
@pytest.mark.parametrize(
    "option",
    [
        *({}, {"lars": 0.01}, {"label_smoothing": 0.1}, {"nesterov": True, "ghost_batch": 4}),
        *({"decay_batch_norm": False}, {"muon": 1.0}),
    ],
)
def test_a_captured_update_is_what_its_launches_give(gpus, option, engine, monkeypatch):
    run = with_options(**option)
    captured, epochs = trained(run, engine(gpus))
    monkeypatch.setattr(Engine, "_capture", lambda self, size, update: None)
    launched, expected = trained(run, engine(gpus))
    assert distance(captured, launched) < 1e-3
    losses = [loss for epoch in epochs for loss in epoch.losses]
    assert losses == pytest.approx([loss for epoch in expected for loss in epoch.losses], rel=1e-3)


def test_one_engine_serves_run_after_run(engine):
    made = engine(2)
    first, _ = trained(RUN, made)
    trained(replace(with_options(lars=0.01), seed=7), made)
    again, _ = trained(RUN, made)
    assert distance(first, again) < 1e-3


def test_the_noise_scale_and_precise_statistics_change_no_training_of_captured_updates(engine):
    made = engine(1)
    plain, _ = trained(RUN, made)
    measured, epochs = trained(with_options(noise_scale=True), made)
    assert distance(plain, measured) < 1e-3
    assert all(epoch.precise != epoch.running and epoch.noise for epoch in epochs)


def test_cudnn_searches_for_the_main_size_alone(monkeypatch):
    """43 images in batches of 16: the tail is another size, and so is the evaluation."""
    asked = []

    def noted(on):
        asked.append(on)
        return nullcontext()

    monkeypatch.setattr(engine_module, "algorithm_search", noted)
    trained(RUN, small_convergence.engine(device="cuda:0"))
    assert asked == [True, False]
    assert not torch.backends.cudnn.benchmark
