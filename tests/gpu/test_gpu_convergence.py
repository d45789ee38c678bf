"""Remedies on a GPU: an update that was captured is what its launches give."""

from contextlib import nullcontext
from dataclasses import replace

import pytest
import torch

from examples import small_convergence
from examples.small_convergence import RUN, STUDY, distance, trained, with_options
from scaling.convergence import engine as engine_module
from scaling.training import step as step_module

pytestmark = pytest.mark.skipif(torch.cuda.device_count() == 0, reason="needs a GPU")


@pytest.fixture
def engine(monkeypatch):
    """A function that makes an engine on the GPU whose convolutions give the same sum twice."""

    def make(gpus):
        made = small_convergence.engine(STUDY.model_copy(update={"gpus": gpus}), "cuda:0")
        for module in (engine_module, step_module):
            monkeypatch.setattr(module, "algorithm_search", lambda on: nullcontext())
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
def test_a_captured_update_is_what_its_launches_give(gpus, option, engine):
    run = with_options(**option)
    captured, epochs = trained(run, engine(gpus))
    eager = engine(gpus)
    eager.captures = False
    launched, expected = trained(run, eager)
    assert distance(captured, launched) < 1e-3
    losses = [epoch["train_loss"] for epoch in epochs]
    assert losses == pytest.approx([epoch["train_loss"] for epoch in expected], rel=1e-3)


def test_one_engine_serves_run_after_run(engine):
    made = engine(2)
    first, _ = trained(RUN, made)
    trained(replace(with_options(lars=0.01), seed=7, precise=True), made)
    again, _ = trained(RUN, made)
    assert distance(first, again) < 1e-3


def test_cudnn_searches_for_the_main_size_alone(monkeypatch):
    """43 images in batches of 16: the tail is another size, and so is the evaluation."""
    asked = []

    def noted(on):
        asked.append(on)
        return nullcontext()

    made = small_convergence.engine(device="cuda:0")
    for module in (engine_module, step_module):
        monkeypatch.setattr(module, "algorithm_search", noted)
    made.start(RUN)
    # On as a rule, and off in the tail's three warm-up steps and its capture.
    assert asked == [True, *4 * [False]]
    assert not torch.backends.cudnn.benchmark
