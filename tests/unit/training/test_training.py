"""Small training runs, preparations of recipe `tuned`, and evaluation."""

import copy
import gzip
import json
import math
from collections import Counter
from unittest.mock import ANY, create_autospec

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from scaling.core.gpu_counters import GpuCounters
from scaling.core.grid import TRACE_BYTES
from scaling.data import dataset
from scaling.data.dataset import ImageDataset
from scaling.launch import supervisor
from scaling.launch.ranks import Rank
from scaling.models.resnet import BasicBlock, ResNet18
from scaling.training import evaluation, resident
from scaling.training.foreach_sgd import ForeachSGD
from scaling.training.step import DeviceStep
from training_runs import ROOT, run, spec_of, supervise_faulty, tuned


@pytest.fixture(scope="module")
def single(images, tmp_path_factory):
    return run(images, tmp_path_factory.mktemp("single") / "run.json")


@pytest.fixture(scope="module")
def double(images, tmp_path_factory):
    """Return the record of a run with two processes, and its path."""
    path = tmp_path_factory.mktemp("double") / "run.json"
    return run(images, path, gpus=2) | {"path": path}


def test_one_process_sees_every_image_once_an_epoch(single):
    assert single["status"] == "ok"
    assert [row["role"] for row in single["epochs"]] == ["warmup"] + 4 * ["measured"]
    assert {(row["iterations"], row["samples"]) for row in single["epochs"]} == {(4, 40)}
    assert single["memory"]["kind"] == "host" and single["memory"]["peak_bytes"][0] > 1e7
    assert {row["power_capped_seconds"] for row in single["epochs"]} == {None}
    assert all(row["gpu_readings"] == [] for row in single["epochs"])
    said = "plain, 1 GPU, batch 10 per GPU, seed 0: ok, test accuracy "
    assert supervisor.summary(single).startswith(said)


def test_same_seed_trains_the_same_and_reads_gpu_counters(images, tmp_path, monkeypatch, single):
    reading = {"energy_joules": 7.0, "sm_mhz": 1980, "celsius": 40}
    reading["held_back_seconds"] = {"power_cap": 0.25}
    monkeypatch.setattr(GpuCounters, "read", lambda self: [reading])
    again = run(images, tmp_path / "run.json")
    assert again["evaluation"] == single["evaluation"]
    for row, before in zip(again["epochs"], single["epochs"], strict=True):
        assert row["train_loss"] == before["train_loss"]
        assert row["gpu_readings"] == [reading] and row["power_capped_seconds"] == 0.25


def test_two_processes_share_the_images_and_both_are_recorded(double):
    assert double["status"] == "ok"
    ranks = [(row["epoch"], row["rank"]) for row in double["epochs"]]
    assert ranks == [(epoch, rank) for epoch in range(1, 6) for rank in (0, 1)]
    assert {(row["iterations"], row["samples"]) for row in double["epochs"]} == {(2, 20)}
    assert all(0 < row["loader_seconds"] < row["seconds"] for row in double["epochs"])
    model = double["model"]
    assert sum(double["communication"]["bucket_bytes"]) == model["gradient_bytes"]
    assert model["flops_per_image"] == evaluation.count_flops(ResNet18(1, 2))


def test_instruments_read_communication_of_each_rank(single, double):
    for rank, reading in enumerate(double["communication"]["readings"]):
        assert (reading["rank"], reading["iterations"]) == (rank, 2)
        assert reading["communication_seconds"] > 0 and reading["exposed_seconds"] >= 0
    for made, ranks in ((single, [0]), (double, [0, 1])):
        assert [own["rank"] for own in made["in_memory"]] == ranks
        assert all(len(own["seconds"]) == 4 for own in made["in_memory"])
        epochs = [row["seconds"] for row in made["epochs"] if row["rank"] == 0]
        assert 0 < made["startup"]["total"] < made["run_seconds"] - sum(epochs)
    assert single["in_memory"][0]["seconds_without_exchange"] is None
    assert all(len(own["seconds_without_exchange"]) == 4 for own in double["in_memory"])
    assert single["communication"]["readings"] == single["communication"]["bucket_bytes"] == []
    assert single["device_time"] == [{"rank": 0, "iterations": 0, "note": "a CPU runs no kernels"}]


def test_trace_has_one_step_of_each_rank(double):
    content = double["path"].with_name("trace.json.gz").read_bytes()
    assert len(content) < TRACE_BYTES
    events = json.loads(gzip.decompress(content))["traceEvents"]
    steps = [event for event in events if event["ph"] == "X"]
    named = {event["pid"]: event["args"]["name"] for event in events if event["ph"] == "M"}
    assert sorted(named.values()) == ["rank 0, host", "rank 1, host"]
    convolutions = [module for module in ResNet18(1, 2).modules() if isinstance(module, nn.Conv2d)]
    of_ranks = [[event for event in steps if event["pid"] == rank] for rank in named]
    # By one clock: no rank ends its step before all have begun theirs.
    first, last = ([end(event["ts"] for event in own) for own in of_ranks] for end in (min, max))
    assert max(first) < min(last)
    for own in of_ranks:
        counted = Counter(event["name"] for event in own)
        assert counted["aten::convolution"] == len(convolutions)
        assert counted["gloo:all_reduce"] == len(double["communication"]["bucket_bytes"])
        assert "aten::cross_entropy_loss" in counted and "Optimizer.step#SGD.step" in counted


def test_ranks_measure_until_the_slowest_is_steady(images, tmp_path, monkeypatch, double):
    """Rank 1 reports 11 to 13 ms for epochs 1 to 3, then 13 ms. Rank 0 always reports 10 ms."""
    limits = {"max-measured-seconds": 0.6, "measured-seconds": 0.01}
    record = supervise_faulty(images, tmp_path / "run.json", monkeypatch, "slowing:1:3", **limits)
    measured = [row for row in record["epochs"] if row["role"] == "measured"]
    # One of them was faster: only of the first 3 is the median as long as of the last 3.
    assert [row["rank"] for row in measured] == 9 * [0, 1]
    assert record["settling"] == {"drift": 0.0, "settled": True}
    # What it has learned is that after equal epochs.
    assert record["evaluation"] == double["evaluation"]
    assert record["model"]["parameters_sha256"] == double["model"]["parameters_sha256"]


@pytest.mark.parametrize("strategy", ["fsdp", "zero1"])
def test_sharded_ranks_train_the_model_of_replicas(images, tmp_path, double, strategy):
    longer = {"measured-seconds": 0.3}
    sharded = run(images, tmp_path / "run.json", gpus=2, strategy=strategy, **longer)
    assert (sharded["status"], sharded["message"]) == ("ok", None)
    assert sharded["model"] == double["model"] | {"parameters_sha256": ANY}
    for name in ("train_loss", "train_accuracy"):
        seen = [[row[name] for row in record["epochs"][:8]] for record in (sharded, double)]
        assert seen[0] == pytest.approx(seen[1], rel=1e-4)
    assert sharded["evaluation"]["test_loss"] == pytest.approx(double["evaluation"]["test_loss"])


OWN = f"{ROOT}/tests/own_models.py:plain"


@pytest.mark.parametrize(("strategy", "recipe"), [("ddp", {}), ("fsdp", tuned(precision="tf32"))])
def test_micro_batches_train_as_whole_batches_do(images, tmp_path, strategy, recipe):
    """Without batch norms, the sum of gradients is the same, so parameters stay equal."""
    common = {"gpus": 2, "strategy": strategy, "model": OWN, "learning-rate": 0.001, **recipe}
    whole, parts = (
        run(images, tmp_path / f"{count}.json", **common, **{"micro-batches": count})
        for count in (1, 5)
    )
    assert whole["message"] is parts["message"] is None
    # A CPU has no TF32.
    assert whole["training"]["recipe_applied"]["precision"] == "float32"
    losses = [[row["train_loss"] for row in record["epochs"]] for record in (whole, parts)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)
    assert losses[0][-1] < losses[0][0]
    assert {row["iterations"] for row in parts["epochs"]} == {2}


def test_model_not_compilable_is_measured_without_compile(images, tmp_path):
    record = run(images, tmp_path / "run.json", model=OWN, **tuned(compile=True))
    assert record["status"] == "ok"
    applied = record["training"]["recipe_applied"]
    assert applied["compile"] is False and applied["images"] == "resident"
    assert applied["notes"][0].startswith("without compile: ")
    assert record["model"]["parameters"] == 3072 * 8 + 8 + 8 * 2 + 2


def resident_trainer(images, model, **options):
    data = dataset.read(images / "images.npz", images / "manifest.json")
    return resident.Resident(spec_of(**options), Rank(0, 0, 1, torch.device("cpu")), model, data)


def test_failed_preparation_restores_weights(images, monkeypatch):
    trainer = resident_trainer(images, ResNet18(1, 2), **tuned())
    before = [tensor.clone() for tensor in trainer.replica.state]
    launch = DeviceStep._launch

    def fails(step, size):
        launch(step, size)
        assert not all(map(torch.equal, before, trainer.replica.state))
        raise RuntimeError("planted")

    monkeypatch.setattr(DeviceStep, "_launch", fails)
    with pytest.raises(RuntimeError, match="planted"):
        trainer.step.compile()
    assert all(map(torch.equal, before, trainer.replica.state))


def test_resnet18_costs_3_329_gflop_per_image():
    model = ResNet18(width=64, classes=10)
    before = copy.deepcopy(model.state_dict())
    assert round(evaluation.count_flops(model) / 1e9, 3) == 3.329
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())


def test_evaluation_uses_running_statistics():
    # Red images: with a mean of 0 and a variance of 1 the logits are 1, 0, 0; by their own, all 0.
    pixels = np.zeros((4, 8, 8, 3), np.uint8) + np.array([255, 0, 0], np.uint8)
    data = ImageDataset(*2 * (pixels, np.zeros(4, np.int64)), ["red"])
    model = nn.Sequential(nn.BatchNorm2d(3), nn.AdaptiveAvgPool2d(1), nn.Flatten()).train()
    found = evaluation.evaluate(model, data, torch.device("cpu"))
    assert found["test_loss"] == pytest.approx(math.log(math.e + 2) - 1, abs=1e-4)


def test_recipe_applies_a_techniques_schedule_and_rates(images, monkeypatch):
    """The run has four epochs of 40 images, in batches of 30."""
    options = {"muon": 0.2, "warmup_share": 0.25, "decay": "linear", "label_smoothing": 0.1}
    options |= {"momentum": 0.6, "rest_rate": 0.05, "zero_gamma": True}
    model, size = ResNet18(1, 2), {"batch-size": 30, "measured-epochs": 3}
    trainer = resident_trainer(images, model, **tuned(**options), **size)
    assert trainer.applied["muon"] == 0.2 and "lars" not in trainer.applied
    assert trainer.replica._momentum.item() == pytest.approx(0.6)
    last = [module.bn2.weight for module in model.modules() if isinstance(module, BasicBlock)]
    assert len(last) == 8 and not any(weight.any() for weight in last)
    set_rates = create_autospec(ForeachSGD.set_rates, side_effect=ForeachSGD.set_rates)
    monkeypatch.setattr(ForeachSGD, "set_rates", set_rates)
    trainer.run_epoch(1)
    assert model.stem[1].num_batches_tracked == 2 and all(weight.any() for weight in last)
    for number in range(2, 6):
        trainer.run_epoch(number)
    shares = [1 / 3, 2 / 3, *(1 - update / 6 for update in range(6))]
    seen = [call.args[1:] for call in set_rates.call_args_list]
    assert seen == [pytest.approx((0.2 * share, 0.05 * share)) for share in shares]


def test_compiled_graphs_serve_later_runs(images, tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "cache"))
    options = tuned(compile=True) | {"model": OWN.replace("plain", "linear")}

    def compiled():
        made = run(images, tmp_path / "run.json", **options)
        applied = made["training"]["recipe_applied"]
        assert applied["compile"] is True and applied["notes"] == []
        assert applied["precision"] == "bf16"
        assert {(row["samples"], row["iterations"]) for row in made["epochs"]} == {(40, 4)}
        return made["training"]["compiled_graphs"], made["model"]["parameters_sha256"]

    first, parameters = compiled()
    assert first["made"] > 0
    assert compiled() == ({"kept": sum(first.values()), "made": 0}, parameters)


def test_trace_events_are_cut_where_they_cross():
    """The events are an annotation, two kernels of an H200, and the launch of the second kernel."""
    rows = [(7, 0.0, 20.0), (7, 0.0, 4.927), (7, 4.832, 2.785), (3, 4.0, 4.0)]
    events = pd.DataFrame(rows, columns=["tid", "ts", "dur"]).assign(ph="X", pid=1)
    events["ts"] += 4820601665288.61
    found = supervisor.nested(events.to_dict("records"))
    assert [event["dur"] for event in found] == [20.0, 4.832, 2.785, 4.0]
    assert [event["ts"] for event in found] == [0.0, 0.0, 4.832, 4.0]
