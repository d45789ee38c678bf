"""Printed against derived: each known mistake is told apart, on a small study and on real ones."""

import math
from decimal import Decimal

import pytest

from examples.published_study import CLEAN, column, edited, everywhere, study
from scaling.published.printed_figures import closeness


def test_a_figure_is_exact_within_one_unit_of_its_last_digit():
    assert closeness(0.7449, Decimal("0.74")) == "exactly"
    assert closeness(2.826, Decimal("2.82")) == "exactly"  # truncated, as documents do
    assert closeness(2.8301, Decimal("2.82")) == "nearly"
    assert closeness(2.89, Decimal("2.82")) == "no"  # 2.4 % less
    assert closeness(32.9, Decimal("32")) == "exactly"
    assert closeness(float("nan"), Decimal("32")) == ""


def test_a_clean_study_agrees_in_every_figure(tmp_path):
    found = study(tmp_path).printed
    assert len(found) == 2 + 4 * 5
    assert set(found.reproduced) == {"exactly"}
    assert set(found.mistakes) == {""}
    # There is no sweep, so no utilization of ours.
    share = found.quantity == "utilization_percent"
    assert set(found[share].agrees) == {""} and found[share].factor.isna().all()
    assert set(found[~share].agrees) == {"exactly"}
    assert found[~share].factor.between(0.999, 1.001).all()


@pytest.mark.parametrize(
    ("quantity", "values", "mistakes"),
    [
        # 2 · 18/9.784, 2 · 17/8.696, 4 · 18/4.892, 4 · 17/4.35
        (
            "speedup",
            column("printed_speedup", "3.679", "3.910", "14.72", "15.63"),
            everywhere("times_gpus"),
        ),
        # 9.784/4.892 = 2.000 and 8.696/4.35 = 1.999
        (
            "speedup",
            column("printed_speedup", "", "", "2.000", "1.999"),
            {(4, 128): "two_gpu_baseline", (4, 512): "two_gpu_baseline"},
        ),
        # 18/9.784, 18/8.696, 18/4.892, 18/4.35: right only where b is the smallest batch
        (
            "speedup",
            column("printed_speedup", "1.840", "2.070", "3.679", "4.138"),
            everywhere("") | {(2, 512): "one_baseline", (4, 512): "one_baseline"},
        ),
        # T(1,512)/4 = 17/4
        (
            "compute_seconds",
            {(4, 128): {"printed_compute_seconds": "4.250"}},
            everywhere("") | {(4, 128): "another_row"},
        ),
        # 2 · 9.1 = 18.2 where T(1,128) = 18.0
        (
            "compute_seconds",
            {(2, 128): {"printed_compute_seconds": "9.100"}},
            everywhere("") | {(2, 128): "other_single_time"},
        ),
        # 2 · 12.0 = 24 where T(1,128) = 18.0: any figure follows from some T(1,b)
        (
            "compute_seconds",
            {(2, 128): {"printed_compute_seconds": "12.000"}},
            everywhere("") | {(2, 128): "unexplained"},
        ),
        (
            "bandwidth_gb_per_s",
            {(4, 512): {"printed_bandwidth_gb_per_s": "99"}},
            everywhere("") | {(4, 512): "unexplained"},
        ),
    ],
)
def test_each_mistake_is_named_in_the_cells_that_have_it(tmp_path, quantity, values, mistakes):
    assert study(tmp_path, edited(values)).mistakes(quantity) == mistakes


def test_the_definition_of_a_studys_figures_is_the_one_that_gives_them(tmp_path):
    values = column("printed_speedup", "3.679", "3.910", "14.72", "15.63")
    cell = study(tmp_path, edited(values)).cell("speedup", 4, 512)
    assert cell.definition == "N · T(1,b) / T(N,b)"
    assert (cell.reproduced, cell.agrees) == ("exactly", "no")
    assert cell.factor == pytest.approx(4, rel=1e-3)


def test_two_figures_that_imply_one_single_gpu_time_explain_each_other(tmp_path):
    # 2 · 10.35 = 4 · 5.175 = 20.7, far from T(1,128) = 18.0
    values = {
        (2, 128): {"printed_compute_seconds": "10.350"},
        (4, 128): {"printed_compute_seconds": "5.175"},
    }
    found = study(tmp_path, edited(values))
    assert found.mistakes("compute_seconds") == {
        **{(2, 128): "other_single_time", (4, 128): "other_single_time"},
        **{(2, 512): "", (4, 512): ""},
    }
    assert found.cell("compute_seconds", 4, 128).implied_single_seconds == pytest.approx(20.7)


def test_compute_and_communication_of_one_cell_do_not_explain_each_other(tmp_path):
    # 12.0 and 9.784 - 12.0 imply one T(1,b) by themselves, as one is the rest of the other.
    values = {"printed_compute_seconds": "12.000", "printed_communication_seconds": "-2.216"}
    found = study(tmp_path, edited({(2, 128): values}))
    assert found.mistakes("compute_seconds")[2, 128] == "unexplained"
    assert found.mistakes("communication_seconds")[2, 128] == "follows_from_compute"


@pytest.mark.parametrize("everything", [False, True])
def test_compute_and_communication_in_each_others_column(tmp_path, everything):
    swapped = edited(column("printed_compute_seconds", "0.784", "0.196", "0.392", "0.100"))
    swapped = edited(
        column("printed_communication_seconds", "8.900", "8.400", "4.450", "4.200"), swapped
    )
    rows = swapped.splitlines()[3:] if everything else swapped.splitlines()[3:4]
    kept = CLEAN.splitlines()
    kept[3 : 3 + len(rows)] = rows
    found = study(tmp_path, "\n".join(kept))
    wrong = everywhere("wrong_column") if everything else {(2, 128): "wrong_column"}
    for quantity in ("compute_seconds", "communication_seconds"):
        assert found.mistakes(quantity) == {**everywhere(""), **wrong}


WITHOUT_512 = "\n".join(line for line in CLEAN.splitlines() if ",1,512," not in line)


def test_right_figures_of_a_batch_without_a_single_gpu_time_cannot_be_checked(tmp_path):
    found = study(tmp_path, WITHOUT_512)
    unknown = {
        **{(2, 128): "", (4, 128): ""},
        **{(2, 512): "no_single_time", (4, 512): "no_single_time"},
    }
    for quantity in ("speedup", "compute_seconds", "communication_seconds"):
        assert found.mistakes(quantity) == unknown
    # Bandwidth is over the communication printed beside it.
    assert found.mistakes("bandwidth_gb_per_s") == everywhere("")
    assert found.cell("speedup", 2, 512).note == ("no single-GPU time for b=512 (not in the grid)")


def test_a_speedup_that_meets_the_time_of_another_row_by_chance_is_not_blamed(tmp_path):
    # 17/8.696 = 1.95 and 18/8.696 = 2.07 are both 2.0 to its last digit of 0.1.
    text = "\n".join(
        line.replace("1.955", "2.0") if ",2,512," in line else line
        for line in WITHOUT_512.splitlines()
    )
    assert study(tmp_path, text).mistakes("speedup")[2, 512] == "no_single_time"


def test_figures_of_a_study_without_its_number_of_parameters_cannot_be_checked(tmp_path):
    found = study(tmp_path, CLEAN.replace("11173962", ""))
    assert found.mistakes("bandwidth_gb_per_s") == everywhere("no_parameters")
    assert found.mistakes("utilization_percent") == everywhere("no_peak")
    assert found.cell("bandwidth_gb_per_s", 2, 128).note.startswith("size of the gradients unknown")


def test_ours_are_by_one_estimate_for_all_cells(tmp_path):
    # One cell without its time without loading: all are by whole epochs, 4.892 - 18/4 and so on.
    found = study(tmp_path, edited({(2, 512): {"epoch_seconds_without_loading": ""}}))
    ours = found.printed[found.printed.quantity == "compute_seconds"]
    assert ours.derived.tolist() == [9.0, 8.5, 4.5, 4.25]
    # What was printed is right all the same, only by the other estimate.
    assert found.mistakes("compute_seconds") == everywhere("")


def test_a_negative_time_of_ours_has_no_factor_and_no_other_estimate_in_its_place(tmp_path):
    # 4.1 - 16.8/4 = -0.1 without loading, 4.35 - 17/4 = 0.1 with.
    values = {"epoch_seconds_without_loading": "4.100"}
    found = study(tmp_path, edited({(4, 512): values}))
    cell = found.cell("communication_seconds", 4, 512)
    assert cell.derived == pytest.approx(-0.1)
    assert math.isnan(cell.factor)
    rate = found.cell("bandwidth_gb_per_s", 4, 512)
    assert math.isnan(rate.derived)
    assert rate.note.startswith("communication not above 0: no bandwidth")


def test_utilization_of_one_number_for_every_n(tmp_path):
    # 11.173962 and 16.760943 of 50 GB/s
    values = column("printed_utilization_percent", "22.35", "22.35", "33.52", "33.52")
    found = study(tmp_path, edited(values))
    assert found.mistakes("utilization_percent") == everywhere("one_peak")
    assert found.cell("utilization_percent", 2, 128).definition == "bandwidth / 50 GB/s"


def test_utilization_of_a_peak_that_nobody_knows_cannot_be_checked(tmp_path):
    values = column("printed_utilization_percent", "22.35", "31.00", "12.00", "27.93")
    found = study(tmp_path, edited(values))
    assert found.mistakes("utilization_percent") == everywhere("no_peak")


def test_a_second_time_on_one_gpu_that_differs(tmp_path):
    sweep = "study,gpus,batch_size,epoch_seconds\nclean,1,128,18.2\nclean,1,512,18.0\n"
    found = study(tmp_path, batch_sweep=sweep)
    # 18.2 is 1.1 % more than 18.0, as a second measurement may be; 18.0 is 5.9 % more than 17.0
    assert found.cell("epoch_seconds", 1, 128).mistakes == "second_single_time"
    cell = found.cell("epoch_seconds", 1, 512)
    assert (cell.mistakes, cell.printed, cell.derived) == ("repeated_single_time", 18.0, 17.0)
