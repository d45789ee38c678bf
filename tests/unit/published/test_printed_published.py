"""Printed against derived in the studies that the repository holds."""

import pytest

from examples.published_study import of_repository


def test_the_notebooks_speedups_are_n_times_too_large():
    found = of_repository("notebook-dp")
    assert set(found.mistakes("speedup").values()) == {"times_gpus"}
    # 4 · 9.19 / 8.76 where 9.19 / 8.76 = 1.049
    assert found.cell("speedup", 4, 512).by_definition == pytest.approx(4.196, abs=1e-3)
    assert found.cell("speedup", 4, 512).derived == pytest.approx(1.049, abs=1e-3)


def test_the_notebooks_bandwidths_are_those_of_one_iteration_of_a_ring_in_gib():
    found = of_repository("notebook-dp").mistakes("bandwidth_gb_per_s")
    assert set(found.values()) == {"ring_for_dp;one_iteration;gib"}
    assert len(found) == 6


def test_the_a40_studys_row_512_uses_a_time_that_its_own_log_does_not_have():
    found = of_repository("lab5-a40-ddp")
    for gpus in (2, 4):
        cell = found.cell("compute_seconds", gpus, 512)
        assert cell.mistakes == "other_single_time"
        assert cell.implied_single_seconds == pytest.approx(19.764)
        assert cell.single_seconds == 19.704
        assert found.mistakes("communication_seconds")[gpus, 512] == "follows_from_compute"


def test_the_a40_studys_speedups_are_over_2_gpus_and_its_peak_is_one_number():
    found = of_repository("lab5-a40-ddp")
    assert set(found.mistakes("speedup").values()) == {"two_gpu_baseline"}
    assert found.cell("utilization_percent", 4, 512).definition == "bandwidth / 0.9 GB/s"
    assert set(found.printed.query("quantity == 'utilization_percent'").reproduced) == {"exactly"}


def test_the_v100_study_prints_whole_epochs_as_compute_and_divides_by_them():
    found = of_repository("lab5-v100-dp")
    assert set(found.mistakes("compute_seconds").values()) == {"total_as_compute"}
    assert set(found.mistakes("bandwidth_gb_per_s").values()) == {"ring_for_dp;over_total"}
    assert set(found.mistakes("speedup").values()) == {""}


def test_lab_4_prints_batch_sizes_as_bandwidth():
    found = of_repository("lab4-dp").mistakes("bandwidth_gb_per_s")
    assert set(found.values()) == {"batch_as_bandwidth"}


def test_two_printed_figures_of_the_published_studies_stay_unexplained():
    # 2 · 10.813 = 21.6 and 4 · 15.27 = 61.1 are far from T(1,32) = 19.27 and from each other.
    unexplained = {
        (name, row.quantity, row.gpus, row.batch_size)
        for name in ("lab5-v100-dp", "lab4-dp", "notebook-dp", "lab5-a40-ddp")
        for row in of_repository(name).printed.itertuples()
        if row.mistakes == "unexplained"
    }
    assert unexplained == {
        ("lab4-dp", "compute_seconds", 2, 32),
        ("lab4-dp", "compute_seconds", 4, 32),
    }
