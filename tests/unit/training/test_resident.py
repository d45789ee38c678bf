"""Which batches of an epoch recipe tuned prepares, and what its steps do."""

from contextlib import nullcontext

import numpy as np
import pytest
import torch

from one_rank import one_rank
from scaling.data import dataset
from scaling.instruments.messages import Messages, collectives
from scaling.launch.ranks import Rank
from scaling.models.resnet import BasicBlock, ResNet18
from scaling.training import resident
from scaling.training.flat_sgd import FlatSGD
from scaling.training.trainer import TrainingData
from training_runs import arguments, spec_of
from training_runs import tuned as asked_for


def test_a_last_batch_is_prepared_from_a_twentieth_of_the_images_on():
    prepared = {(50_000, 8192): [8192], (12_500, 8192): [8192, 4308], (96, 32): [32]}
    for (samples, batch_size), sizes in (prepared | {(100, 95): [95, 5], (100, 96): [96]}).items():
        all_sizes = resident._batch_sizes(samples, batch_size)
        assert sum(all_sizes) == samples and resident._sizes_to_compile(all_sizes) == sizes


def made(images, folder, gpus=1, **options):
    """A trainer of 40 images in batches of 30 over four epochs, and its model."""
    asked = asked_for(**options) | {"batch-size": 30, "gpus": gpus}
    spec = spec_of(arguments(images, folder / "run.json", **asked))
    data = TrainingData(dataset.load(images / "images.npz"), np.full(3, 0.5), np.full(3, 0.25))
    model = ResNet18(1, 2)
    return resident.Resident(spec, Rank(0, 0, gpus, torch.device("cpu")), model, data), model


def test_a_recipe_has_a_techniques_schedule_rates_momentum_and_batch_norms(
    images, tmp_path, monkeypatch
):
    options = {"muon": 0.2, "warmup_share": 0.25, "decay": "linear", "label_smoothing": 0.1}
    options |= {"momentum": 0.6, "rest_rate": 0.05, "zero_gamma": True, "ghost_batch": 10}
    trainer, model = made(images, tmp_path, **options)
    assert trainer.applied["muon"] == 0.2 and "lars" not in trainer.applied
    assert trainer.replica._momentum.item() == pytest.approx(0.6)
    last = [module.bn2.weight for module in model.modules() if isinstance(module, BasicBlock)]
    assert len(last) == 8 and not any(weight.any() for weight in last)
    seen = []
    set_rates = FlatSGD.set_rates
    monkeypatch.setattr(
        FlatSGD, "set_rates", lambda self, *rates: seen.append(rates) or set_rates(self, *rates)
    )
    trainer.run_epoch(1)
    # The batches of 30 and 10 images are four of 10 for the running statistics.
    assert model.stem[1].num_batches_tracked == 4 and all(weight.any() for weight in last)
    for number in range(2, 6):
        trainer.run_epoch(number)
    shares = [1 / 3, 2 / 3, *(1 - update / 6 for update in range(6))]
    assert seen == [pytest.approx((0.2 * share, 0.05 * share)) for share in shares]


def test_steps_without_communication_exchange_nothing(images, tmp_path):
    with one_rank(tmp_path):
        trainer, model = made(images, tmp_path, gpus=2)
        train, sent = trainer.in_memory(1), []
        for context in (nullcontext(), trainer.replica.without_communication(), nullcontext()):
            messages = Messages()
            messages.phase = "step"
            with collectives(messages), context:
                train(1)
            rows = [row for row in messages.rows if row["kind"] == "all_reduce"]
            sent.append(sum(row["elements"] for row in rows))
    size = sum(parameter.numel() for parameter in model.parameters())
    # Tensors are filled up to aligned sizes.
    assert sent == [sent[0], 0, sent[0]] and sent[0] >= size
