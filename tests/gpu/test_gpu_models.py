"""Models of torchvision and of users on GPUs: captured, streamed, sharded, quantized."""

import json

import pandas as pd
import pytest
from test_gpu_training import STEADY_RATE, several, trainer

from examples import quantized_digits as digits
from scaling.data import resident
from training_runs import ROOT, SWITCHES, run, tuned

OWN = f"{ROOT}/tests/own_models.py:convolution"
TUNED = {"precision": "float32", **dict.fromkeys(SWITCHES, True)}


@pytest.fixture(scope="module")
def train(images, tmp_path_factory):
    """Return a function that returns the record of recipe `tuned`. Equal options run once."""
    folder = tmp_path_factory.mktemp("models")
    made = {}

    def trained(**changed):
        changed = {"model": OWN, "learning-rate": 0.001, **changed}
        changed |= tuned(**TUNED | changed.pop("options", {}))
        asked = json.dumps(changed)
        if asked not in made:
            made[asked] = run(images, folder / f"{len(made)}.json", device="cuda", **changed)
        return made[asked]

    return trained


def losses(record):
    """Return the mean training loss over ranks, by epoch."""
    assert record["status"] == "ok", record["message"]
    by_epoch = pd.DataFrame(record["epochs"]).groupby("epoch")
    return by_epoch["train_loss"].mean().tolist()


@pytest.mark.parametrize("strategy", ["ddp", pytest.param("fsdp", marks=several)])
def test_model_not_capturable_is_measured_without_graphs(train, strategy):
    several_gpus = {} if strategy == "ddp" else {"gpus": 2, "strategy": strategy}
    record = train(**several_gpus, **{"model-options": {"looks": True}})
    assert losses(record)
    applied = record["training"]["recipe_applied"]
    assert (applied["cuda_graph"], applied["compile"], applied["fused_norms"]) == (0, 1, 0)
    assert applied["notes"][0].startswith("without cuda_graph: ")
    captured = train(**several_gpus)
    assert captured["training"]["recipe_applied"]["cuda_graph"]
    assert captured["training"]["recipe_applied"]["notes"] == []
    assert losses(captured) == pytest.approx(losses(record), rel=0.01)


def test_streamed_images_train_as_resident_ones(monkeypatch):
    found = []
    for share in (resident.RESIDENT_SHARE, 0):
        monkeypatch.setattr(resident, "RESIDENT_SHARE", share)
        tuned, _, _ = trainer(rate=STEADY_RATE, cuda_graph=True)
        found.append([tuned.run_epoch(epoch).train_loss for epoch in (1, 2, 3)])
        assert tuned.applied["images"] == ("resident" if share else "streamed")
    assert found[0] == pytest.approx(found[1], rel=1e-3)


@several
@pytest.mark.parametrize("strategy", ["fsdp", "zero1", "dp"])
def test_strategies_train_the_same_model_under_recipe_tuned(train, strategy):
    as_they_are = {"crop-padding": 0, "horizontal-flip": False}
    replicas, other = (train(gpus=2, strategy=name, **as_they_are) for name in ("ddp", strategy))
    assert losses(other) == pytest.approx(losses(replicas), rel=0.01)
    assert other["training"]["recipe_applied"]["cuda_graph"] == (strategy != "dp")


@several
@pytest.mark.parametrize(
    ("name", "strategy"), [("resnet18", "ddp"), ("resnet18", "fsdp"), ("vit_b_16", "fsdp")]
)
def test_torchvisions_models_are_captured_and_sharded(train, name, strategy):
    options = {"options": {"precision": "bf16"}, "gpus": 2, "batch-size": 5}
    if name == "vit_b_16":
        options["model-options"] = {"image_size": 32}
    record = train(model=name, strategy=strategy, **options)
    assert losses(record)
    assert record["training"]["recipe_applied"]["notes"] == []


def test_int8_on_a_gpu_costs_little(tmp_path):
    digits.write_images(tmp_path, 300, 100)
    digits.train(tmp_path, "weights.pt", device="cuda", epochs=2)
    digits.evaluate(tmp_path, "", device="cuda", variants={digits.LAST: {}})
    assert abs(digits.record(tmp_path)["difference_points"]) <= 5
