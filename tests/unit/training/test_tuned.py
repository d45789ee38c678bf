"""Which batches of an epoch recipe tuned prepares."""

import json

import numpy as np
import pytest
import torch

from scaling.data import dataset
from scaling.launch.ranks import Rank
from scaling.models.resnet import ResNet18
from scaling.training import tuned
from scaling.training.trainer import TrainingData
from training_runs import TUNED, arguments, spec_of


@pytest.mark.parametrize(
    ("samples", "batch_size", "prepared"),
    [
        (50_000, 128, [128]),
        (50_000, 8192, [8192]),
        (12_500, 8192, [8192, 4308]),
        (100, 95, [95, 5]),
        (100, 96, [96]),
        (96, 32, [32]),
    ],
)
def test_a_last_batch_is_prepared_from_a_twentieth_of_the_images_on(samples, batch_size, prepared):
    sizes = tuned._batch_sizes(samples, batch_size)
    assert sum(sizes) == samples
    assert tuned._worth_preparing(sizes) == prepared


def test_a_run_says_which_batches_were_compiled(images, tmp_path, monkeypatch):
    monkeypatch.setattr(torch, "compile", lambda function, dynamic: function)
    options = {**json.loads(TUNED["recipe-options"]), "compile": True}
    asked = {**TUNED, "batch-size": 30, "recipe-options": json.dumps(options)}
    spec = spec_of(arguments(images, tmp_path / "run.json", **asked))
    data = TrainingData(dataset.load(images / "images.npz"), np.full(3, 0.5), np.full(3, 0.25))
    trainer = tuned.Tuned(spec, Rank(0, 0, 1, torch.device("cpu")), ResNet18(1, 2), data)
    assert trainer.compiled_batch_sizes == [30, 10]
    assert trainer.run_epoch(1).samples == 40
