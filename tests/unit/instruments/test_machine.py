"""The machine check: a busy CPU, and GPUs by their driver's readings."""

import json
import subprocess
import sys

import psutil
import pytest

import measure
from scaling.core.errors import UserError
from scaling.instruments import machine

HOST = {"host": "n1", "busy_share": 0.1, "cores": 8, "governor": "performance", "xid": None}
GPU = {"host": "n1", "processes": [], "memory_bytes": 100, "free_bytes": 99}
GPU |= {"uncorrected_errors": None, "rows_to_remap": None, "nvlinks": 18, "cores_near": 4}
GPU |= {"flops_per_second": 700e12, "PcieLinkGeneration": [5, 5], "PcieLinkWidth": [16, None]}
GPU |= {"reading": [{"held_back_seconds": {"power_cap": 3.0, "heat": 0.0}}]}
BRAKED = [{"held_back_seconds": {"power_brake": 0.5, "power_cap": 1.0}}]


def of_gpus(*changed):
    """Return the findings on three GPUs. `changed` are changed readings of some of them."""
    gpus = [GPU | {"gpu": f"GPU-{i}"} for i in range(3 - len(changed))]
    gpus += [GPU | {"gpu": "GPU-x"} | change for change in changed]
    return machine.judge([HOST], gpus)


def test_fit_machine_has_no_findings():
    assert of_gpus() == []
    unknown = dict.fromkeys(("memory_bytes", "free_bytes", "cores_near", "flops_per_second"))
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
        ({"reading": BRAKED}, "odd", "power brake lowered its clocks"),
        ({"PcieLinkWidth": [8, 16]}, "odd", "its PcieLinkWidth is 8 of 16"),
        ({"nvlinks": 12}, "odd", "it has fewer NVLinks than another GPU"),
        ({"cores_near": 0}, "odd", "no core of this job is on its side"),
    ],
)
def test_unfit_part_is_named_with_host_and_gpu(change, severity, words):
    (finding,) = of_gpus(change)
    assert (finding["severity"], finding["host"], finding["gpu"]) == (severity, "n1", "GPU-x")
    assert words in finding["message"]


def test_findings_sorted_by_severity():
    found = of_gpus({"nvlinks": 1, "gpu": "a"}, {"processes": [7], "gpu": "b"})
    assert [one["gpu"] for one in found] == ["b", "a"]
    told = machine.judge([HOST | {"governor": "powersave", "xid": "NVRM: Xid 79"}], [])
    assert "powersave" in told[0]["message"] and "Xid 79" in told[1]["message"]


def look(folder, check):
    """Return the findings on the CPU of this machine."""
    output = folder / "check.json"
    measure.main(check={"device": "cpu", "check": check, "output": output})
    return json.loads(output.read_text())["findings"]


def test_busy_cpu_is_warned_of(tmp_path):
    spin = [sys.executable, "-c", "while True: pass"]
    busy = [subprocess.Popen(spin) for _ in range(psutil.cpu_count())]
    try:
        (finding, *_) = look(tmp_path, "refuse")
    finally:
        for process in busy:
            process.kill()
            process.wait()
    assert finding["severity"] == "odd" and "of its CPU busy: wait" in finding["message"]


def test_bad_machine_is_refused_unless_check_is_warn(tmp_path, monkeypatch):
    unfit = of_gpus({"free_bytes": 70})
    monkeypatch.setattr(machine, "judge", lambda hosts, gpus: unfit)
    with pytest.raises(UserError, match=r"^n1 GPU-x: 30% of its memory .* \(machine.check: warn"):
        look(tmp_path, "refuse")
    assert look(tmp_path, "warn")[0]["severity"] == "bad"
