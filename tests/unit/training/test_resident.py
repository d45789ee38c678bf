"""Which batches of an epoch recipe tuned prepares, and by which rule it trains."""

import numpy as np
import pytest
import torch

from scaling.data import dataset
from scaling.launch.ranks import Rank
from scaling.models.resnet import BasicBlock, ResNet18
from scaling.training import resident
from scaling.training.flat_sgd import FlatSGD
from scaling.training.trainer import TrainingData
from training_runs import arguments, spec_of, tuned


def test_a_last_batch_is_prepared_from_a_twentieth_of_the_images_on():
    prepared = {(50_000, 8192): [8192], (12_500, 8192): [8192, 4308], (96, 32): [32]}
    for (samples, batch_size), sizes in (prepared | {(100, 95): [95, 5], (100, 96): [96]}).items():
        all_sizes = resident._batch_sizes(samples, batch_size)
        assert sum(all_sizes) == samples and resident._sizes_to_compile(all_sizes) == sizes


def test_a_recipe_has_a_techniques_schedule_rates_momentum_and_batch_norms(
    images, tmp_path, monkeypatch
):
    """40 images in batches of 30 over four epochs."""
    options = {"muon": 0.2, "warmup_share": 0.25, "decay": "linear", "label_smoothing": 0.1}
    options |= {"momentum": 0.6, "rest_rate": 0.05, "zero_gamma": True, "ghost_batch": 10}
    asked = tuned(**options) | {"batch-size": 30}
    spec = spec_of(arguments(images, tmp_path / "run.json", **asked))
    data = TrainingData(dataset.load(images / "images.npz"), np.full(3, 0.5), np.full(3, 0.25))
    model = ResNet18(1, 2)
    trainer = resident.Resident(spec, Rank(0, 0, 1, torch.device("cpu")), model, data)
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
