"""What a look at a machine finds: a CPU that is really busy, and GPUs as their driver tells."""

import json
import subprocess
import sys

import psutil
import pytest

import machine_check
from scaling.core.errors import UserError
from scaling.instruments import machine

HOST = {"host": "n1", "busy_share": 0.1, "cores": 8}
GPU = {
    "host": "n1",
    "processes": [],
    "memory_bytes": 100,
    "free_bytes": 99,
    "uncorrected_errors": None,
    "rows_to_remap": None,
    "flops_per_second": 700e12,
    "reading": [{"held_back_seconds": {"power_cap": 3.0, "heat": 0.0}}],
}


def of_gpus(*changed):
    """The findings of a machine of three GPUs, and of those with another value."""
    gpus = [GPU | {"gpu": f"GPU-{i}"} for i in range(3 - len(changed))]
    gpus += [GPU | {"gpu": "GPU-x"} | change for change in changed]
    return machine.judge([HOST], gpus)


def test_a_machine_that_is_fit_gives_nothing_to_remark():
    assert of_gpus() == []
    unknown = dict.fromkeys(("memory_bytes", "free_bytes", "flops_per_second"))
    assert of_gpus(*3 * [GPU | unknown | {"reading": [], "gpu": "MIG"}]) == []


@pytest.mark.parametrize(
    ("change", "severity", "words"),
    [
        ({"processes": [12, 33]}, "bad", "other processes compute on it (12, 33): end what"),
        ({"free_bytes": 70}, "bad", "30% of its memory are taken before the study begins"),
        ({"uncorrected_errors": 1}, "bad", "its memory has had errors"),
        ({"rows_to_remap": 1}, "bad", "its memory has had errors"),
        ({"flops_per_second": 600e12}, "bad", "at 86% of the median GPU's rate"),
        ({"flops_per_second": 670e12}, "odd", "at 96% of the median GPU's rate"),
        (
            {"reading": [{"held_back_seconds": {"power_brake": 0.5, "power_cap": 1.0}}]},
            *("odd", "power brake lowered its clocks"),
        ),
    ],
)
def test_what_is_unfit_is_named_with_its_place(change, severity, words):
    (finding,) = of_gpus(change)
    assert (finding["severity"], finding["host"], finding["gpu"]) == (severity, "n1", "GPU-x")
    assert words in finding["message"]


def test_the_worst_comes_first():
    slower = {"flops_per_second": 670e12, "gpu": "a"}
    found = of_gpus(slower, {"processes": [7], "gpu": "b"})
    assert [one["gpu"] for one in found] == ["b", "a"]


@pytest.fixture
def look(tmp_path):
    output = tmp_path / "check.json"

    def look(check):
        arguments = ["--gpus", "1", "--device", "cpu", "--check", check, "--output", str(output)]
        machine_check.main(arguments)
        return json.loads(output.read_text())

    return look


def test_a_cpu_that_others_keep_busy_is_warned_of_and_not_refused(look):
    busy = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"])
        for _ in range(psutil.cpu_count())
    ]
    try:
        (finding, *_) = look("refuse")["findings"]
    finally:
        for process in busy:
            process.kill()
            process.wait()
    assert finding["severity"] == "odd" and "of its CPU busy: wait" in finding["message"]


def test_what_is_bad_is_refused_in_one_sentence_unless_a_warning_is_wanted(look, monkeypatch):
    unfit = of_gpus({"free_bytes": 70})
    monkeypatch.setattr(machine, "judge", lambda hosts, gpus: unfit)
    with pytest.raises(UserError, match=r"^n1 GPU-x: 30% of its memory .* \(machine.check: warn"):
        look("refuse")
    assert look("warn")["findings"][0]["severity"] == "bad"
