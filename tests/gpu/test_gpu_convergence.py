"""Captured updates of a technique equal launched ones; int8 from training to record."""

import pytest
import torch

from examples import quantized_digits as digits
from examples.small_trainings import STUDY, distance, experiment, trained
from scaling.training.step import DeviceStep


@pytest.mark.parametrize("gpus", [1, 2])
@pytest.mark.parametrize(
    "option", [{"lars": 0.01}, {"label_smoothing": 0.1}, {"decay_batch_norm": False}]
)
def test_captured_update_equals_its_launches(gpus, option, monkeypatch):
    monkeypatch.setattr(torch.backends.cudnn, "deterministic", True)
    study = STUDY.model_copy(update={"gpus": gpus})
    captured, epochs = trained(experiment(study, "cuda:0"), **option)
    monkeypatch.setattr(DeviceStep, "replays", False)
    launched, expected = trained(experiment(study, "cuda:0"), **option)
    assert distance(captured, launched) < 1e-3
    losses = [epoch["train_loss"] for epoch in epochs]
    assert losses == pytest.approx([epoch["train_loss"] for epoch in expected], rel=1e-3)


def test_int8_on_a_gpu_costs_little(tmp_path):
    digits.write_images(tmp_path, 300, 100)
    digits.train(tmp_path, "weights.pt", device="cuda", epochs=2)
    digits.evaluate(tmp_path, "", device="cuda", variants={digits.LAST: {}})
    assert abs(digits.record(tmp_path)["difference_points"]) <= 5
