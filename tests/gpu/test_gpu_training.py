"""Captured steps, replicas and NCCL on GPUs."""

import copy
import gzip
import json
from time import perf_counter

import pytest
import torch
import torch.distributed as dist

from examples.small_trainings import STUDY, distance, experiment, trained
from examples.small_trainings import images as noise
from scaling.core import environment
from scaling.core.errors import UserError
from scaling.core.gpu_counters import GpuCounters, power_capped_seconds
from scaling.core.grid import Cell
from scaling.core.training_options import Model
from scaling.instruments.messages import Messages, collectives
from scaling.launch.ranks import Rank
from scaling.launch.run_spec import RunSpec
from scaling.launch.stall import StepProgress
from scaling.models.resnet import ResNet18
from scaling.training.resident import Resident
from scaling.training.step import DeviceStep
from training_runs import KILLED, SWITCHES, run, supervise_faulty, tuned

GPUS = torch.cuda.device_count()
several = pytest.mark.skipif(GPUS < 2, reason="needs two GPUs")
OPTIONS = {"precision": "float32", **SWITCHES}
QUICK = {"cuda_graph": True, "fused_norms": True}
# Of ResNet-18 with one channel and two classes: twice its first convolution's, thrice all others'.
FLOPS_OF_WIDTH_1 = 921_696


def trainer(global_batch=32, gpus=1, rate=0.01, weight_decay=5e-4, micro_batches=1, **options):
    """Return rank 0's trainer with recipe `tuned`, its model, and the model's initial state.

    There are 100 images of two classes. With batches of 32, the last batch has 4 images.
    """
    spec = RunSpec(
        cell=Cell("tuned", "ddp", gpus, global_batch // gpus, 0),
        engine="resident",
        device="cuda",
        model=Model(width=16),
        instrumented_iterations=0,
        learning_rate=rate,
        weight_decay=weight_decay,
        micro_batches=micro_batches,
        recipe_options={**OPTIONS, **options},
    )
    torch.manual_seed(0)
    model = ResNet18(16, 2).cuda()
    before = copy.deepcopy(model.state_dict())
    rank = Rank(0, 0, gpus, torch.device("cuda", 0))
    made = Resident(spec, rank, model, noise(100, 2))
    # Capturing leaves the model as it was.
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    return made, model, before


def movement(model, before):
    """Return the change of each parameter since `before`."""
    return [parameter.detach() - before[name] for name, parameter in model.named_parameters()]


# Rounding differs from run to run. At this rate it does not grow from step to step: epochs then
# move the weights alike within 0.2 %, launched or captured; at 0.01, 6 % were seen (one H200).
STEADY_RATE = 1e-4


SCHEDULED = {"nesterov": True, "warmup_share": 0.2, "decay": "linear"}


@pytest.mark.parametrize(
    "options",
    [
        *({}, {"compile": True}, {"precision": "bf16"}, {"fused_norms": True}, SCHEDULED),
        *(SCHEDULED | {"muon": STEADY_RATE, "compile": compile} for compile in (False, True)),
        *({"global_batch": 52, "compile": compile} for compile in (False, True)),
    ],
)
def test_captured_steps_train_as_launched_ones_do_tail_included(options):
    """Batches of 32 leave a last batch of 4, not compiled. Batches of 52 leave 48, compiled."""
    moved = []
    for captured in (False, True):
        tuned, model, before = trainer(cuda_graph=captured, rate=STEADY_RATE, **options)
        assert tuned.run_epoch(1).samples == 100
        moved.append(torch.cat([part.flatten() for part in movement(model, before)]))
        tuned.close()
    assert (moved[0] - moved[1]).norm() < 0.01 * moved[0].norm()


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


@pytest.mark.parametrize("precision", ["float32", "bf16"])
@pytest.mark.parametrize("compiled", [False, True])
def test_three_captured_steps_decay_no_batch_norm_and_no_bias(precision, compiled):
    """The weight decay moves weights by 5.6 % (1 + 1.9 + 2.71 times 1 %), gradients hardly."""
    options = {"precision": precision, "compile": compiled, "decay_batch_norm": False}
    rates = {"rate": STEADY_RATE, "weight_decay": 0.01 / STEADY_RATE}
    tuned, model, before = trainer(cuda_graph=True, **rates, **options)
    assert tuned.applied["cuda_graph"] and tuned.applied["compile"] == compiled
    assert tuned.in_memory(3)(3).iterations == 3
    tuned.close()
    pairs = zip(model.named_parameters(), movement(model, before), strict=True)
    for (name, parameter), moved in pairs:
        assert moved.any(), name
        if parameter.dim() > 1:
            share = moved.norm().item() / before[name].norm().item()
            assert share == pytest.approx(0.056, rel=0.1), name
        else:
            assert moved.abs().max() < 0.01, name


@pytest.mark.parametrize("precision", ["float32", "bf16"])
@pytest.mark.parametrize(
    "switches", [{}, {"cuda_graph": True}, {"cuda_graph": True, "compile": True}]
)
def test_fused_norms_train_as_those_of_pytorch_do(precision, switches):
    """Running statistics are compared: rounding alone changes weights by tens of percent."""
    variances, losses = [], []
    for options in ({}, {"fused_norms": True, **switches}):
        tuned, model, before = trainer(50, precision=precision, **options)
        losses.append(tuned.run_epoch(1).train_loss)
        found = [value for name, value in model.named_buffers() if name.endswith("running_var")]
        variances.append(torch.cat(found))
        assert all(moved.any() for moved in movement(model, before))
        tuned.close()
    assert (variances[0] - variances[1]).norm() < 0.02 * variances[0].norm()
    assert losses[1] == pytest.approx(losses[0], rel=0.05)


def test_captured_steps_without_communication_exchange_nothing(tmp_path):
    """Collectives are recorded while steps are captured."""
    dist.init_process_group("nccl", f"file://{tmp_path}/store", rank=0, world_size=1)
    messages, sent = Messages(), []
    messages.phase = "step"

    def exchanged():
        found = [row for row in messages.rows if row["kind"] == "all_reduce"]
        messages.rows.clear()
        return len(found)

    with collectives(messages):
        tuned, *_ = trainer(gpus=2, cuda_graph=True)
        train = tuned.in_memory(1)
        train(1)
        sent.append(exchanged())
        with tuned.replica.without_communication():
            train(1)
        sent.append(exchanged())
    notes = tuned.applied["notes"]
    tuned.close()
    dist.destroy_process_group()
    assert notes == [] and sent[0] > 0 and sent[1] == 0


BF16 = {"precision": "bf16", "fused_norms": False}


@pytest.mark.parametrize("switches", [{}, {"micro_batches": 2}, BF16])
def test_captured_steps_of_ddp_train_as_launched_ones(tmp_path, switches):
    """The test is one of two ranks, in a process group that has no other rank."""
    dist.init_process_group("nccl", f"file://{tmp_path}/store", rank=0, world_size=1)
    moved = []
    for captured in (False, True):
        options = {"cuda_graph": captured, "fused_norms": True, "rate": STEADY_RATE, **switches}
        tuned, model, before = trainer(gpus=2, **options)
        assert tuned.run_epoch(1).samples == 50 and tuned.applied["notes"] == []
        assert len(tuned.replica.bucket_bytes) > 1 and tuned.replica.sent_share <= 1
        moved.append(torch.cat([part.flatten() for part in movement(model, before)]))
        tuned.close()
    dist.destroy_process_group()
    assert (moved[0] - moved[1]).norm() < 0.01 * moved[0].norm()


@several
@pytest.mark.parametrize(
    "asked",
    [
        *({}, {"strategy": "fsdp"}, tuned(**OPTIONS | QUICK)),
        tuned(**OPTIONS | QUICK) | {"strategy": "zero1"},
    ],
)
def test_ranks_train_together_and_every_instrument_reads(images, tmp_path, asked):
    record = run(images, tmp_path / "run.json", gpus=2, device="cuda", **asked)
    assert record["status"] == "ok" and record["message"] is None
    assert not record["training"]["recipe_applied"].get("notes")
    readings = record["communication"]["readings"]
    read = {(one["rank"], one["estimate"]) for one in readings if one["iterations"]}
    assert read == {(0, "profiler"), (1, "profiler")}
    if "strategy" not in asked:  # A replica, which has all parameters.
        assert len(set(record["model"]["parameters_sha256"])) == 1
        assert all(min(of["seconds_without_exchange"]) > 0 for of in record["in_memory"])
    assert [(one["rank"], one["gpu"]) for one in record["device_time"]] == [(0, 0), (1, 0)]
    for of_rank in record["device_time"]:
        assert 0 < of_rank["compute_seconds"] <= of_rank["busy_seconds"]
    step = json.loads(gzip.decompress((tmp_path / "trace.json.gz").read_bytes()))["traceEvents"]
    named = {event["args"]["name"] for event in step if event["ph"] == "M"}
    assert named == {f"rank {rank}, {place}" for rank in (0, 1) for place in ("host", "GPU 0")}


@pytest.mark.parametrize("recipe", ["plain", "tuned"])
def test_one_gpu_says_how_long_it_works(images, tmp_path, recipe):
    asked = {} if recipe == "plain" else tuned(**OPTIONS | QUICK)
    record = run(images, tmp_path / "run.json", gpus=1, device="cuda", **asked)
    assert record["communication"]["readings"] == []
    (read,) = record["device_time"]
    assert read["iterations"] > 0 and read["kernels"] > 100 * read["iterations"]
    # Other runs of the same steps were traced than timed: a captured step leaves no gap to tell.
    assert 0 < read["compute_seconds"] <= read["busy_seconds"] < 1.5 * read["seconds"]
    seconds = {kind: own["seconds"] for kind, own in read["classes"].items()}
    assert sum(seconds.values()) == pytest.approx(read["busy_seconds"], rel=0.02)
    assert seconds.get("other", 0) < 0.02 * read["busy_seconds"]
    assert min(seconds[kind] for kind in ("products", "element-wise", "optimizer")) > 0
    assert read["classes"]["element-wise"]["bytes"] > 0
    assert record["model"]["flops_per_image"] == FLOPS_OF_WIDTH_1


def test_counters_of_a_busy_gpu_are_read():
    counters, began = GpuCounters(environment.visible_gpus()[:1]), perf_counter()
    factor = torch.randn(8192, 8192, dtype=torch.bfloat16, device="cuda")
    while perf_counter() - began < 1:
        factor @ factor
        torch.cuda.synchronize()
    (read,) = counters.read()
    seconds = perf_counter() - began
    assert read["energy_joules"] is None or 50 < read["energy_joules"] / seconds < 2000
    assert all(0 <= held < 1.1 * seconds for held in read["held_back_seconds"].values())
    assert power_capped_seconds([read]) is not None
    assert 200 < read["sm_mhz"] < 5000


def test_progress_follows_the_device_not_the_host():
    progress = StepProgress(4, torch.device("cuda", 0))
    progress.start(1, 4)
    progress.launch(1)
    torch.cuda.synchronize()
    assert progress.position().finished == 1
    torch.cuda._sleep(2 * 10**9)  # cycles, about a second
    progress.launch(2)
    assert (progress.position().launched, progress.position().finished) == (2, 1)
    torch.cuda.synchronize()
    assert progress.position().finished == 2


INSIDE = r"rank 0: timed out: waited \d+ s after step 1 of epoch 2.*; likely stuck: rank 1\)"
CAPTURED = tuned(**OPTIONS | {"cuda_graph": True})


@several
@pytest.mark.parametrize(
    ("fault", "asked", "named"),
    [
        *((f"killed:{rank}:1", asked, KILLED[rank]) for rank in KILLED for asked in ({}, CAPTURED)),
        ("stuck:1:1", {}, "rank 1 was still"),
        ("stuck:1:1", CAPTURED, INSIDE),
        ("stopped:1:1", CAPTURED, INSIDE),
    ],
)
def test_lost_rank_ends_the_run_and_is_named(images, tmp_path, monkeypatch, fault, asked, named):
    """The rank is lost between epochs or inside a captured epoch."""
    asked = {"device": "cuda", "collective-timeout-seconds": 5} | asked
    with pytest.raises(UserError, match=named):
        supervise_faulty(images, tmp_path / "run.json", monkeypatch, fault, **asked)
    assert not list(tmp_path.iterdir())
