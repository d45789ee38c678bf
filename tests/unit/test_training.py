"""Real training runs in small, and what becomes of a run when a process fails."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import psutil
import pytest

import train_run
from scaling import dataset, environment, files, flops, launcher, oom_killer, supervisor, verdict
from scaling.dataset import ImageDataset
from scaling.errors import UserError
from scaling.resnet import ResNet18
from scaling.startup_clock import PHASES

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "workflow/scripts/train_run.py"
FAULTY_WORKER = ROOT / "tests/faulty_worker.py"


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """Forty training and ten test images of two classes, as images.npz and manifest.json."""
    folder = tmp_path_factory.mktemp("images")
    random = np.random.default_rng(0)

    def split(count):
        labels = np.arange(count) % 2
        pixels = random.integers(0, 128, (count, 32, 32, 3)) + 100 * labels[:, None, None, None]
        return pixels.astype(np.uint8), labels.astype(np.int64)

    data = ImageDataset(*split(40), *split(10), classes=["dark", "light"])
    dataset.save(data, folder / "images.npz")
    files.write_json(folder / "manifest.json", dataset.manifest(data, "images", "made for a test"))
    return folder


def arguments(images, output, **changed):
    options = {
        "dataset": images / "images.npz",
        "manifest": images / "manifest.json",
        "output": output,
        "device": "cpu",
        "gpus": 1,
        "batch-size": 10,
        "model-width": 1,
        "recipe-options": json.dumps({"loader_workers": 1}),
        **changed,
    }
    return [text for key, value in options.items() for text in (f"--{key}", str(value))]


def run(images, output, **changed):
    train_run.main(arguments(images, output, **changed))
    return json.loads(output.read_text())


def supervise_faulty(images, output, monkeypatch, fault, **changed):
    monkeypatch.setenv("FAULT", fault)
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "workflow/scripts"))
    argv = arguments(images, output, gpus=2, **changed)
    spec = train_run.spec_from(train_run.parse(argv))
    command = launcher.command(FAULTY_WORKER, argv, verdict.processes(spec))
    return supervisor.supervise(spec, images / "manifest.json", output, command)


@pytest.fixture
def left_behind():
    """A function that lists the processes started since the test began and still there.

    Those whose parent is gone count too.
    """
    launcher.adopt_orphans()
    before = psutil.Process().children(recursive=True)
    return lambda: [
        process for process in psutil.Process().children(recursive=True) if process not in before
    ]


@pytest.fixture(scope="module")
def single(images, tmp_path_factory):
    return run(images, tmp_path_factory.mktemp("single") / "run.json")


@pytest.fixture(scope="module")
def double(images, tmp_path_factory):
    return run(images, tmp_path_factory.mktemp("double") / "run.json", gpus=2)


def test_one_process_sees_every_image_once_an_epoch(single):
    assert single["status"] == "ok"
    assert [row["role"] for row in single["epochs"]] == ["warmup"] + 3 * ["measured"]
    assert {(row["iterations"], row["samples"]) for row in single["epochs"]} == {(4, 40)}


def test_two_processes_share_the_images_and_both_are_recorded(double):
    assert double["status"] == "ok"
    ranks = [(row["epoch"], row["rank"]) for row in double["epochs"]]
    assert ranks == [(epoch, rank) for epoch in (1, 2, 3, 4) for rank in (0, 1)]
    assert {(row["iterations"], row["samples"]) for row in double["epochs"]} == {(2, 20)}


def test_ddp_says_which_buckets_it_sends(single, double):
    assert sum(double["communication"]["bucket_bytes"]) == double["model"]["gradient_bytes"]
    assert single["communication"]["bucket_bytes"] == []


def test_three_instruments_read_the_communication_of_each_rank(single, double):
    readings = double["communication"]["readings"]
    read = {(reading["rank"], reading["estimate"]) for reading in readings}
    estimates = ("without_communication", "profiler", "ddp_log")
    assert read == {(rank, estimate) for rank in (0, 1) for estimate in estimates}
    assert all(reading["iterations"] == 2 for reading in readings)
    for reading in readings:
        if reading["estimate"] != "without_communication":
            assert reading["communication_seconds"] > 0
            assert reading["exposed_seconds"] >= 0
    assert single["communication"]["readings"] == []
    assert single["device_time"] == [{"rank": 0, "iterations": 0, "note": "a CPU runs no kernels"}]


def test_waiting_for_data_is_part_of_the_epoch(double):
    assert all(0 < row["loader_seconds"] < row["seconds"] for row in double["epochs"])


def test_the_record_names_its_parameters_and_its_environment(single):
    assert single["training"]["learning_rate"] == 0.1
    assert single["environment"]["device"] == "cpu"
    assert single["environment"]["torch"]
    assert len(single["environment"]["config_digest"]) == 64
    assert single["memory"]["kind"] == "host" and single["memory"]["peak_bytes"][0] > 1e7


def test_the_record_says_where_the_time_outside_the_epochs_went(single, double):
    for record in (single, double):
        startup = record["startup"]
        assert list(startup) == [*PHASES, "total"]
        assert all(startup[phase] > 0 for phase in PHASES)
        assert sum(startup[phase] for phase in PHASES) == pytest.approx(startup["total"])
        first_rank = [row["seconds"] for row in record["epochs"] if row["rank"] == 0]
        known = startup["total"] + sum(first_rank) + record["shutdown_seconds"]
        assert record["shutdown_seconds"] > 0
        assert known < record["run_seconds"]


def test_the_record_counts_the_operations_of_an_image(single, double):
    expected = flops.training_flops_per_image(ResNet18(1, 2))
    assert single["model"]["flops_per_image"] == double["model"]["flops_per_image"] == expected


def test_the_same_seed_gives_the_same_training(images, single, tmp_path):
    again = run(images, tmp_path / "run.json")
    assert [row["train_loss"] for row in again["epochs"]] == [
        row["train_loss"] for row in single["epochs"]
    ]
    assert again["evaluation"] == single["evaluation"]


def test_the_last_lines_tell_a_person_how_it_went(images, tmp_path, capsys):
    train_run.main(arguments(images, tmp_path / "run.json"))
    told = capsys.readouterr().out
    assert "course/ddp on 1 x cpu, batch 10 per GPU: ok" in told
    assert "without data loading" in told and "training loss" in told and "test accuracy" in told


def test_a_batch_larger_than_the_dataset_is_infeasible_without_starting_a_process(
    images, tmp_path, monkeypatch
):
    monkeypatch.setattr(launcher, "launch", lambda *_: pytest.fail("a process was started"))
    record = run(images, tmp_path / "run.json", gpus=2, **{"batch-size": 21})
    assert record["status"] == "infeasible"
    assert record["message"] == (
        "a global batch of 2·21 = 42 samples is larger than the 40 training images"
    )
    assert record["epochs"] == []


def test_more_gpus_than_the_machine_has_is_infeasible_without_starting_a_process(
    images, tmp_path, monkeypatch
):
    monkeypatch.setattr(launcher, "launch", lambda *_: pytest.fail("a process was started"))
    monkeypatch.setattr(environment, "gpu_names", lambda: ["NVIDIA H200", "NVIDIA H200"])
    record = run(images, tmp_path / "run.json", gpus=4, device="cuda")
    assert record["status"] == "infeasible"
    assert record["message"] == "4 GPUs are asked for and the machine has 2"
    assert record["environment"]["device_names"] == record["environment"]["device_ids"] == []
    assert record["run_seconds"] is record["startup"] is record["shutdown_seconds"] is None


def test_a_loss_that_is_not_finite_is_diverged_and_its_times_are_kept(images, tmp_path):
    record = run(images, tmp_path / "run.json", **{"learning-rate": 1e30})
    assert record["status"] == "diverged"
    assert record["message"].startswith("the loss was not finite in epoch ")
    assert len(record["epochs"]) == 4
    assert any(row["train_loss"] is None for row in record["epochs"])


@pytest.mark.parametrize(
    ("fault", "status", "message"),
    [
        ("oom:1:2", "oom", "rank 1: CUDA out of memory. Tried to allocate 2.00 GiB."),
        ("oom_host:0:2", "oom_host", "rank 0: Cannot allocate memory"),
    ],
)
def test_no_memory_on_one_rank_ends_all_ranks_as_a_result(
    images, tmp_path, monkeypatch, fault, status, message, left_behind
):
    record = supervise_faulty(images, tmp_path / "run.json", monkeypatch, fault)
    assert (record["status"], record["message"]) == (status, message)
    assert min(record["memory"]["peak_bytes"]) > 0
    assert {row["epoch"] for row in record["epochs"]} == {1, 2}
    assert record["startup"]["total"] < record["run_seconds"]
    assert record["shutdown_seconds"] is record["model"]["flops_per_image"] is None
    assert left_behind() == []


@pytest.mark.parametrize(
    ("fault", "cause"),
    [
        ("error:1:1", r"\(rank 1: 'a bug'"),
        ("killed:1:1", r"rank 1 ended without a word in epoch 2"),
    ],
)
def test_a_rank_that_fails_ends_the_run_without_a_record_and_is_named(
    images, tmp_path, monkeypatch, fault, cause, left_behind
):
    with pytest.raises(UserError, match=cause):
        supervise_faulty(images, tmp_path / "run.json", monkeypatch, fault)
    assert list(tmp_path.iterdir()) == []
    assert left_behind() == []


TUNED = {
    "recipe": "tuned",
    "recipe-options": json.dumps(
        {"precision": "bf16", "channels_last": True, "compile": False, "cuda_graph": False}
    ),
}


@pytest.mark.parametrize("gpus", [1, 2])
def test_the_tuned_recipe_trains_on_every_image_too(images, tmp_path, gpus):
    record = run(images, tmp_path / "run.json", gpus=gpus, **TUNED, **{"batch-size": 15})
    assert record["status"] == "ok"
    assert {row["samples"] for row in record["epochs"]} == {40 // gpus}
    # 40 images: batches of 15, 15, 10; 20 images on each of two ranks: 15, 5.
    assert {row["iterations"] for row in record["epochs"]} == {3 if gpus == 1 else 2}
    assert record["training"]["recipe_applied"]["precision"] == "bf16"
    assert record["epochs"][-1]["train_loss"] < record["epochs"][0]["train_loss"]


def test_a_cuda_graph_without_a_gpu_is_one_clear_sentence(images, tmp_path):
    options = json.loads(TUNED["recipe-options"]) | {"cuda_graph": True}
    with pytest.raises(UserError, match=r"recipes\.tuned\.cuda_graph is true and there is no GPU"):
        run(
            images,
            tmp_path / "run.json",
            **{"recipe": "tuned", "recipe-options": json.dumps(options)},
        )


def test_a_rank_that_hangs_ends_the_run_after_the_collective_timeout_and_is_named(
    images, tmp_path, monkeypatch, left_behind, capfd
):
    limit = {"collective-timeout-seconds": 6}
    with pytest.raises(UserError, match=r"\(rank 0: .*[Tt]imed out.*; rank 1 hung in epoch 2\)"):
        supervise_faulty(images, tmp_path / "run.json", monkeypatch, "stuck:1:1", **limit)
    assert "Rank 1, when a signal ended it:" in capfd.readouterr().err
    assert left_behind() == []


def test_a_rank_stuck_where_the_backend_sees_no_wait_ends_the_run_and_is_named(
    images, tmp_path, monkeypatch, left_behind, capfd
):
    limit = {"collective-timeout-seconds": 3}
    with pytest.raises(UserError, match=r"; likely stuck: rank 1\)") as caught:
        supervise_faulty(images, tmp_path / "run.json", monkeypatch, "stuck:1:1", **TUNED, **limit)
    assert re.search(r"rank 0: timed out: waited \d s for step 2 of epoch 2", str(caught.value))
    assert "in fail" in capfd.readouterr().err
    assert left_behind() == []


def test_a_run_over_its_time_limit_keeps_its_epochs_and_shows_where_each_rank_was(
    images, tmp_path, monkeypatch, double, left_behind, capfd
):
    seconds = round(2 * double["run_seconds"])
    limit = {"time-limit-seconds": seconds}
    record = supervise_faulty(images, tmp_path / "run.json", monkeypatch, "stuck:1:2", **limit)
    assert record["status"] == "timeout"
    assert record["message"] == f"stopped at the time limit of {seconds} s after 2 of 4 epochs"
    assert {row["epoch"] for row in record["epochs"]} == {1, 2}
    assert record["run_seconds"] > seconds
    waiting, _, stuck = capfd.readouterr().err.partition("Rank 1, when a signal ended it:")
    assert "in barrier" in waiting.partition("Rank 0, when a signal ended it:")[2]
    assert "faulty_worker.py" in stuck and "in fail" in stuck
    assert left_behind() == []


def test_a_killed_run_leaves_no_process_that_could_write_into_the_next_one(
    images, tmp_path, left_behind
):
    command = [sys.executable, str(SCRIPT), *arguments(images, tmp_path / "run.json", gpus=2)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as supervisor_process:
        assert supervisor_process.stdout is not None
        assert "epoch 1/4" in supervisor_process.stdout.readline()
        family = psutil.Process(supervisor_process.pid).children(recursive=True)
        supervisor_process.kill()
        _, alive = psutil.wait_procs(family, timeout=30)
    assert len(family) >= 3
    assert alive == []


def test_data_parallel_on_the_cpu_is_refused_in_one_sentence(images, tmp_path):
    with pytest.raises(UserError, match="strategy dp on several GPUs needs CUDA devices"):
        run(images, tmp_path / "run.json", gpus=2, strategy="dp")


def test_a_command_that_is_ended_leaves_no_process_behind(tmp_path, left_behind):
    family = "import subprocess, time; subprocess.Popen(['sleep', '3600']); time.sleep(3600)"
    ending = launcher.launch([sys.executable, "-c", family], {}, time_limit=1)
    assert ending.timed_out
    assert left_behind() == []


def test_an_ending_counts_the_processes_the_kernel_killed_meanwhile(monkeypatch):
    monkeypatch.setattr(oom_killer, "kills_so_far", iter([2, 5]).__next__)
    ending = launcher.launch([sys.executable, "-c", "raise SystemExit(4)"], {}, time_limit=60)
    assert (ending.returncode, ending.timed_out, ending.oom_kills) == (4, False, 3)
    assert ending.seconds > 0
