"""Correct values pass, each mistake is named in its cells, and chance alone is not blamed."""

import re
from itertools import product

import pytest

from examples.grader.published_study import (
    CELLS,
    CLEAN,
    TRAIN_IMAGES,
    causes_of,
    column,
    edited,
    study,
)
from examples.grader.submissions import MISTAKES, blamed, rates
from grader.judge import judge
from grader.study import read_folder

SPEEDUP, COMPUTE = "printed_speedup", "printed_compute_seconds"
COMMUNICATION, BANDWIDTH = "printed_communication_seconds", "printed_bandwidth_gb_per_s"
WITHOUT = "epoch_seconds_without_loading"
WITHOUT_512 = "\n".join(line for line in CLEAN.splitlines() if ",1,512," not in line)
REST = {COMPUTE: "12.000", COMMUNICATION: "-2.216"}
SHORT = {WITHOUT: "3.600", COMMUNICATION: "-0.600", BANDWIDTH: ""}
SLIPS = [
    (CLEAN, {}, {}),
    # No T(1,512): 17/8.696 = 1.95 and 18/8.696 = 2.07 are both 2.0 to its last digit: chance.
    (WITHOUT_512, {(2, 512): {SPEEDUP: "2.0"}}, {}),
    # 2 · 12.0 = 24 where T(1,128) = 18.0, and 12.0 + 0.784 = 12.784 of 9.784 s
    (CLEAN, {(2, 128): {COMPUTE: "12.000"}}, {"unexplained": [(2, 128)]}),
    # 9.784 - 12.0 follows from the compute beside it: one mistake.
    (CLEAN, {(2, 128): REST}, {"unexplained": [(2, 128)]}),
    # T(4,512) = 3.6 without loading is 17 % less than 16.8/4 = 4.2.
    (CLEAN, {(4, 512): SHORT}, {"faster_than_gpus": [(4, 512)]}),
    (CLEAN, column(SPEEDUP, "3.679", "3.910", "14.72", "15.63"), {"counts_gpus_twice": CELLS}),
    # The time is ten times what three figures beside it follow from; they are right.
    (CLEAN, {(2, 512): {"epoch_seconds": "86.960"}}, {"time_contradicted": [(2, 512)]}),
    (CLEAN, {(4, 512): {"status": "oom"}}, {"status_and_time": [(4, 512)]}),
]


@pytest.mark.parametrize(("text", "values", "causes"), SLIPS)
def test_a_slip_is_named_in_its_cells(tmp_path, text, values, causes):
    ranges = dict.fromkeys(["epoch_seconds_min", "epoch_seconds_max", "count"], "")
    values = {cell: ranges | fields for cell, fields in values.items()}
    assert causes_of(study(tmp_path, edited(values, text))) == causes


TIMED = "gpus,batch_size,Time (s),Speedup\n1,32,98.5,1.00\n1,128,71.3,1.00\n1,512,64.3,1.00\n"
TIMED += "2,32,67.0,1.47\n2,128,38.1,1.87\n2,512,32.7,1.97\n"
WITH = "gpus,batch_size,epoch time (s),{}\n1,32,98.5,{}\n1,128,71.3,{}\n1,512,64.3,{}\n"
WITH += "2,32,67.0,{}\n2,128,38.1,{}\n2,512,32.7,{}\n"
MODEL = "resnet18-cifar,11173962"
BIG = "clean,ddp,resnet18-cifar,11173962,1,{},ok,16.000,15.800,1,,,,5,15.9,16.1\n"
SHARES = WITH.format("efficiency (%)", 1, 1, 1, "0.74", "0.94", "0.98")
REMARKS = [
    (WITHOUT_512, {}, {"unchecked": [(2, 512), (4, 512)] * 2}),
    (CLEAN.replace(MODEL, "net,"), {}, {"bytes_unknown": CELLS}),
    (CLEAN + BIG.format(12_500), {}, {"missing_cell": [(2, 12_500), (4, 12_500)]}),
    # 2 · 30,000 is more than 50,000 images.
    (CLEAN + BIG.format(30_000), {}, {"missing_cell": None}),
    (SHARES, {}, {"fraction_of_percent": [*product((1, 2), (32, 128, 512))]}),
]


@pytest.mark.parametrize(("text", "values", "remarks"), REMARKS)
def test_what_is_right_or_open_is_a_remark(tmp_path, text, values, remarks):
    judged = study(tmp_path, edited(values, text))
    given = causes_of(judged, "remark")
    assert {name: given.get(name) for name in remarks} == remarks and causes_of(judged) == {}


def test_a_range_excuses_only_where_it_is_one(tmp_path):
    # 17 / 6.0 = 2.83, within 11.9 to 17.1 and 5.9 to 6.1 less than 2
    fast = {"epoch_seconds": "6.000", WITHOUT: "", SPEEDUP: "2.833", COMMUNICATION: ""}
    fast |= {BANDWIDTH: "", "epoch_seconds_min": "5.9", "epoch_seconds_max": "6.1"}
    noisy = {(2, 512): fast, (1, 512): {"epoch_seconds_min": "11.9"}}
    assert set(causes_of(study(tmp_path, edited(noisy)))) == set()
    wrong = {(2, 512): fast | {"epoch_seconds_min": "7.8"}}
    causes = causes_of(study(tmp_path, edited(wrong)))
    assert causes.keys() == {"outside_its_range", "faster_than_gpus"}


def test_no_gpu_computes_faster_than_at_its_peak(tmp_path):
    # 50,000 · 3.33 GFLOP / 495 TFLOP/s = 0.336 s on one GPU, 0.168 s on two
    short = {(1, 128): {WITHOUT: "0.300"}, (2, 128): {WITHOUT: "0.200"}}
    assert causes_of(study(tmp_path, edited(short)))["launch_times"] == [(1, 128)]


def test_honest_tables_pass_and_mistakes_are_named():
    assert blamed(range(40)) == {}
    total, noticed, named = rates([3], list(MISTAKES)[::4])
    assert noticed == total and named >= 0.95 * total


MS = re.sub(r"(,\d+\.\d),", r"\g<1>e3,", WITH)
PARTS, ONE = "compute (s),comm (s)", "gpus,batch,epoch time (s),compute (s)"
STRONG = "GPUs,Global batch size,Time (s),Speedup\n1,128,40.0,1.00\n1,256,36.0,1.00\n"
STRONG += "2,128,25.0,1.60\n2,256,20.0,1.80\n"
LAB = """Training with DDP

| GPUs | b = 32: compute | b = 32: communication | b = 128: compute | b = 128: communication |
|---|---|---|---|---|
| 2 | 45.00 | 22.00 | 33.00 | 5.10 |

| GPUs | b = 32: time (s) | b = 128: time (s) |
|---|---|---|
| 1 | 98.5 | 71.3 |
| 2 | 67.0 | 38.1 |
"""
PUBLISHED = {
    "times and speedups": (TIMED, set()),
    "tokens": ("gpus,batch,tokens/s,speedup\n1,8,310K/sec,1\n2,8,0.6M/sec,1.94\n", set()),
    "fixed global batch": (STRONG, set()),
    "any strategy": (
        TIMED.replace("gpus", "mode,gpus")
        .replace("\n1,", "\nfsdp,1,")
        .replace("\n2,", "\nfsdp,2,"),
        set(),
    ),
    "measured parts": (
        WITH.format(PARTS, ",", ",", ",", "40.1,26.9", "30.1,8.0", "29.7,3.0"),
        set(),
    ),
    "one measured cell": (ONE + ",comm (s)\n1,32,2.29,,\n2,32,1.27,1.16,0.11\n", set()),
    "measured on one GPU": (ONE + "\n1,32,19.38,17.90\n2,32,11.26,8.95\n4,32,6.02,4.48", set()),
    "training time of Question 1": (LAB, set()),
    "times N": (WITH.format("images/s", 508, 701, 778, 1493, 2625, 3058), {"counts_gpus_twice"}),
    "mean of the times on one GPU": (
        TIMED.replace("1.47", "1.165").replace("1.87", "2.048").replace("1.97", "2.387"),
        {"wrong_reference_time"},
    ),
    "efficiency not divided": (
        WITH.format("efficiency (%)", 100, 100, 100, "147.0", "187.1", "196.6"),
        {"not_divided"},
    ),
    # A column of zeros is no evidence of a cause.
    "communication cut off": (
        WITH.format(PARTS, *["98.5,0", "71.3,0", "64.3,0"] * 2),
        {"not_divided", "unexplained"},
    ),
    "N T(N) / T(1)": (WITH.format("eff (%)", 100, 100, 100, 136.0, 106.9, 101.7), {"inverted"}),
    "no T(1,b)": ("gpus,batch,t,speedup\n2,8,9.26,1.00\n4,8,4.95,1.87\n8,8,2.72,3.40\n", set()),
    "milliseconds below seconds": (
        MS.format(PARTS, "98.5,", "71.3,", "64.3,", "49.2,17.8", "35.6,2.5", "32.1,0.6"),
        {"time_unit"},
    ),
    "digits exchanged": (TIMED.replace("1.97", "1.79"), {"unexplained"}),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_tables_as_people_publish_them_are_judged_right(tmp_path, name):
    text, causes = PUBLISHED[name]
    path = tmp_path / ("t.md" if "|" in text else "t.csv")
    path.write_text(text)
    studies = read_folder(path)
    judged = [judge(one, TRAIN_IMAGES) for one in studies]
    assert {name for one in judged for name in causes_of(one.findings)} == causes
