"""Printed communication and bandwidth against derived: what they were taken from is told apart."""

import pytest

from examples.published_study import CELLS, CLEAN, column, edited, everywhere, study


def test_a_bandwidth_has_the_mistakes_of_the_communication_time_that_it_divides_by(tmp_path):
    # 10.784 - 18/2 = 1.784 counts the loading; 196 · 44,695,848 B / 1.784 s = 4.911 GB/s
    values = {"printed_communication_seconds": "1.784", "printed_bandwidth_gb_per_s": "4.911"}
    found = study(tmp_path, edited({(2, 128): values}, edited(SLOW_LOADER)))
    cell = found.cell("bandwidth_gb_per_s", 2, 128)
    assert (cell.mistakes, cell.inherited) == ("", "loading_counted")
    assert found.cell("bandwidth_gb_per_s", 4, 128).inherited == ""


def test_communication_that_follows_from_a_wrong_compute_time(tmp_path):
    # 9.784 - 9.1 = 0.684
    values = {"printed_compute_seconds": "9.100", "printed_communication_seconds": "0.684"}
    found = study(tmp_path, edited({(2, 128): values}))
    assert found.mistakes("communication_seconds")[2, 128] == "follows_from_compute"


def test_the_whole_epoch_printed_as_compute(tmp_path):
    values = column("printed_compute_seconds", "9.784", "8.696", "4.892", "4.350")
    found = study(tmp_path, edited(values)).mistakes("compute_seconds")
    # 4.892 and so on: communication is at least 2 % of the epoch
    assert found == everywhere("total_as_compute;loading_counted")


SLOW_LOADER = {
    (2, 128): {"epoch_seconds": "10.784", "epoch_seconds_max": "11"},
    (2, 512): {"epoch_seconds": "9.696", "epoch_seconds_max": "10"},
}
"""A second more on 2 GPUs, all of it loading: communication without loading stays as it was."""


def test_the_wait_for_data_counted_as_communication(tmp_path):
    # 10.784 - 18/2 = 1.784, 9.696 - 17/2 = 1.196
    values = column("printed_communication_seconds", "1.784", "1.196", "0.392", "0.100")
    found = study(tmp_path, edited(values, edited(SLOW_LOADER)))
    assert found.mistakes("communication_seconds") == {
        **{(2, 128): "loading_counted", (2, 512): "loading_counted"},
        **{(4, 128): "", (4, 512): ""},
    }
    assert found.cell("communication_seconds", 2, 128).derived == pytest.approx(0.784)


def test_loading_left_out_where_the_times_cannot_tell_it(tmp_path):
    # No times without loading on several GPUs, but T - T(1)/N of such times, T printed as compute.
    unknown = edited({cell: {"epoch_seconds_without_loading": ""} for cell in CELLS})
    slow = edited(SLOW_LOADER, unknown)
    totals = edited(column("printed_compute_seconds", "9.684", "8.596", "4.842", "4.300"), slow)
    found = study(tmp_path, totals)
    assert found.mistakes("communication_seconds") == {
        **{(2, 128): "loading_left_out", (2, 512): "loading_left_out"},
        **{(4, 128): "", (4, 512): ""},
    }
    assert found.cell("communication_seconds", 2, 128).derived == pytest.approx(1.784)


DP = CLEAN.replace(",ddp,", ",dp,")


@pytest.mark.parametrize(
    ("text", "figures", "mistakes", "factor"),
    [
        # 44,695,848 / 0.784 = 0.05701 GB/s; for 4 GPUs 67,043,772 / 0.392 = 0.1710
        (CLEAN, "0.05701 0.2280 0.1710 0.6704", "one_iteration", 1 / 196),
        # 11.173962e9 / 2^30 = 10.4066, 16.760943e9 / 2^30 = 15.6098
        (CLEAN, "10.407 10.407 15.610 15.610", "gib", 1e9 / 2**30),
        # 196 · 44,695,848 / 8.9, 49 · …/8.4, 98 · 67,043,772 / 4.45, 25 · …/4.2
        (CLEAN, "0.98431 0.26073 1.47647 0.39907", "over_total", 0.784 / 8.9),
        # 2(N-1)/N · b
        (CLEAN, "128 512 192 768", "batch_as_bandwidth", 128 / 11.173962),
        # The ring's bandwidth, where GPU 0 passes on 2(N-1)·K: 2 and 4 times as much.
        (DP, "11.174 11.174 16.761 16.761", "ring_for_dp", 1 / 2),
        # One iteration of the ring in GiB: 44,695,848 / 0.784 / 2^30 = 0.053095
        (DP, "0.053095 0.21238 0.15928 0.62439", "ring_for_dp;one_iteration;gib", 0.0023755),
    ],
)
def test_the_mistakes_of_a_bandwidth_are_named(tmp_path, text, figures, mistakes, factor):
    values = column("printed_bandwidth_gb_per_s", *figures.split())
    found = study(tmp_path, edited(values, text))
    assert found.mistakes("bandwidth_gb_per_s") == everywhere(mistakes)
    assert found.cell("bandwidth_gb_per_s", 2, 128).factor == pytest.approx(factor, rel=1e-3)
