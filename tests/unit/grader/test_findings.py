"""Each known mistake is told apart, in the cells that have it, and honest studies have none."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from examples.grader.planted import KINDS
from examples.grader.published_study import CELLS, CLEAN, COLUMN, column, edited, said, study
from examples.grader.rates import blamed, judged, rates
from examples.grader.submissions import honest
from grader.study import TIMES

SPEEDUP, COMPUTE = "printed_speedup", "printed_compute_seconds"
COMMUNICATION, BANDWIDTH = "printed_communication_seconds", "printed_bandwidth_gb_per_s"
SHARE, WITHOUT = "printed_utilization_percent", "epoch_seconds_without_loading"
WITHOUT_512 = "\n".join(line for line in CLEAN.splitlines() if ",1,512," not in line)
DP = CLEAN.replace(",ddp,", ",dp,")
NO_512 = [(2, 512), (4, 512)]
WHOLE = edited({cell: {WITHOUT: "", BANDWIDTH: "", SHARE: ""} for cell in CELLS})
"""Times without loading on one GPU alone."""


def test_a_clean_study_has_no_finding(tmp_path):
    judged = study(tmp_path)
    assert said(judged) == {} == said(judged, "info")


SHORT = {WITHOUT: "3.600", COMMUNICATION: "-0.600", BANDWIDTH: "", SHARE: ""}
REST = {COMPUTE: "12.000", COMMUNICATION: "-2.216"}
MISTAKES = [
    # T(N,b) - 17.8/N, T(N,b) - 16.8/N: no other time without loading is there
    (WHOLE, column(COMMUNICATION, "0.884", "0.296", "0.442", "0.150"), {"loading_counted": CELLS}),
    # No T(1,512): 17/8.696 = 1.95 and 18/8.696 = 2.07 are both 2.0 to its last digit: chance.
    (WITHOUT_512, {(2, 512): {SPEEDUP: "2.0"}}, {}),
    # 2 · 12.0 = 24 where T(1,128) = 18.0: any figure follows from some T(1,b)
    (CLEAN, {(2, 128): {COMPUTE: "8.200"}}, {"unexplained": [(2, 128)]}),
    # 12.0 + 0.784 = 12.784 of 9.784 s
    (CLEAN, {(2, 128): {COMPUTE: "12.000"}}, {"unexplained;parts_exceed": [(2, 128)]}),
    # 9.784 - 12.0 implies the same one, but it is the rest of the other.
    (CLEAN, {(2, 128): REST}, {"below_zero": [(2, 128)], "unexplained": [(2, 128)]}),
    # 1.6 % less than 16.76, where the rounding of 0.100 s leaves 1 %
    (CLEAN, {(4, 512): {BANDWIDTH: "16.50"}}, {"nearly": [(4, 512)]}),
    # Fractions of 0.5 and 0.6 GB/s give the same, but no study has such a peak: a warning.
    (CLEAN, column(SHARE, "0.2235", "0.2235", "0.2793", "0.2793"), {"all_below_one": CELLS}),
    # T(4,512) = 3.6 without loading is 17 % less than 16.8/4 = 4.2.
    (CLEAN, {(4, 512): SHORT}, {"faster_than_gpus": [(4, 512)]}),
]


@pytest.mark.parametrize(("text", "values", "found"), MISTAKES)
def test_a_mistake_is_named_once_in_the_cells_that_have_it(tmp_path, text, values, found):
    assert said(study(tmp_path, edited(values, text))) == found


@pytest.mark.parametrize(
    ("text", "values", "remarks"),
    [
        (WITHOUT_512, {}, {"no_single_time": [*NO_512] * 2}),
        (CLEAN, column(SHARE, "22.35", "31", "12", "27.93"), {"no_peak": CELLS}),
        (DP, {}, {"ring_for_dp": CELLS}),
    ],
)
def test_what_cannot_be_checked_is_a_remark(tmp_path, text, values, remarks):
    found = said(study(tmp_path, edited(values, text)), "info")
    assert {name: found.get(name) for name in remarks} == remarks


@pytest.mark.parametrize(("batch", "gaps"), [(12_500, [(2, 12_500), (4, 12_500)]), (30_000, None)])
def test_a_cell_whose_batch_is_larger_than_the_training_set_is_not_missing(tmp_path, batch, gaps):
    row = f"clean,ddp,resnet18-cifar,11173962,1,{batch},ok,16.000,15.800,1,,,,,5,15.9,16.1"
    assert said(study(tmp_path, f"{CLEAN}{row}\n"), "info").get("missing_cell") == gaps


def test_a_stated_definition_is_tested_first(tmp_path):
    small = column(SHARE, "0.22", "0.22", "0.34", "0.34")
    fractions = column(SHARE, "0.2235", "0.2235", "0.3352", "0.3352")
    cases = [("5000", small, set()), ("{2: 50, 4: 60}", {}, set()), ("50", {}, {"unexplained"})]
    for peak, values, found in [*cases, ("50", fractions, {"fraction"})]:
        text = f"clean: {{definitions: {{utilization_percent: {peak}}}}}"
        (tmp_path / "studies.yaml").write_text(text)
        assert set(said(study(tmp_path, edited(values)))) == found


def test_seconds_added_to_parts_that_explain_each_other_are_seen(tmp_path):
    # Compute is the whole epoch and communication that less T(1,b)/N: both 5 s too long.
    compute = column(COMPUTE, "14.684", "13.596", "9.842", "9.300")
    rest = column(COMMUNICATION, "5.784", "5.196", "5.392", "5.100")
    values = {cell: compute[cell] | rest[cell] for cell in CELLS}
    found = said(study(tmp_path, edited(values)))
    assert {cell for cells in found.values() for cell in cells} == {*CELLS}


def test_a_range_excuses_only_where_it_is_one(tmp_path):
    # 17 / 7.0 = 2.43, within 13.5 to 17.1 and 6.9 to 7.1 less than 2
    fast = {"epoch_seconds": "7.000", WITHOUT: "7.000", SPEEDUP: "2.429", COMMUNICATION: ""}
    fast |= {BANDWIDTH: "", SHARE: "", "epoch_seconds_min": "6.9", "epoch_seconds_max": "7.1"}
    noisy = {(2, 512): fast, (1, 512): {"epoch_seconds_min": "13.5"}}
    assert set(said(study(tmp_path, edited(noisy)))) == set()
    wrong = {(2, 512): fast | {"epoch_seconds_min": "7.8"}}
    assert set(said(study(tmp_path, edited(wrong)))) == {"range", "faster_than_gpus"}


SINGLE = [(1, 128), (1, 512)]
BARE = edited(
    {cell: dict.fromkeys([n for n in COLUMN if "printed_" in n], "") for cell in [*SINGLE, *CELLS]}
)
"""Times without a figure."""


def timed(times, without=None):
    """`BARE` with other times, and with none without loading unless they are given."""
    rows = {
        cell: dict.fromkeys(["count", *TIMES], "") | {"epoch_seconds": f"{t:.4f}", WITHOUT: w}
        for cell, t, w in zip([*SINGLE, *CELLS], times, without or [""] * 6, strict=True)
    }
    return edited(rows, BARE)


@pytest.mark.parametrize(
    ("hardware", "cells"),
    [("2 x Quadro RTX 8000", [(1, 128), (2, 128)]), ("A100", []), ("unknown", [])],
)
def test_no_gpu_computes_faster_than_at_its_peak(tmp_path, hardware, cells):
    # 50,000 · 3.33 GFLOP / 16.3 TFLOP/s = 10.2 s on one RTX 8000, 1.07 s on an A100
    (tmp_path / "studies.yaml").write_text(f"clean: {{hardware: {hardware}}}")
    text = timed((18, 17, 12, 11, 6, 5), ["9.5", "16", "5.0", "10", "5.8", "4.8"])
    assert said(study(tmp_path, text)).get("launch_times", []) == cells


def test_a_part_that_is_as_long_on_several_gpus_as_on_one_is_a_remark(tmp_path):
    # 1.2 s of evaluation on each GPU and (18 - 1.2)/N, with 10 ms for each of 196 to 25 iterations
    times = (18, 17, 11.56, 9.59, 6.38, 5.40)
    assert "fixed_part" in said(study(tmp_path, timed(times)), "info")
    # A few percent more than N times as fast is no warning.
    assert said(study(tmp_path, timed((18, 17, 8.55, 8.1, 4.3, 4.1)))) == {}


@given(seed=st.integers(0, 2**32 - 1), ring=st.booleans())
@settings(max_examples=100, deadline=None, derandomize=True)
# Its coarse figures leave the bytes open, its utilization does not.
@example(seed=1008736, ring=False)
# Its figures follow from times with loading and from those without as well.
@example(seed=700008178, ring=False)
# Its bandwidth is by a communication that was rounded and is not printed.
@example(seed=930001476, ring=True)
def test_no_honest_submission_is_called_wrong(seed, ring):
    found = judged(honest(seed), ring)
    assert found[found["severity"] != "info"].empty


def test_noise_alone_is_hardly_ever_a_warning():
    assert len(blamed(range(100))) <= 1


def test_planted_errors_are_found_in_the_right_cell_and_named():
    share = rates(range(len(KINDS)), seed=1)
    assert share["found"] >= 0.97 and share["placed"] >= 0.97 and share["named"] >= 0.9
