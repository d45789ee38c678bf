"""Every check of the audit: silent on a clean study, and alone in finding its own fault."""

import math
from dataclasses import replace

import pytest

from scaling.audit import Study, audit
from scaling.bandwidth import bandwidth
from scaling.communication import communication
from scaling.interconnect import interconnect
from scaling.speedup import speedup
from unit.records import GRADIENT_BYTES, TRAIN_IMAGES, timing_row, timing_table

SWEEP = interconnect(
    [
        {
            "gpus": 2,
            "backend": "nccl",
            # 44,695,848 B in 1 ms on 2 GPUs: a peak of 44.7 GB/s
            "rows": [
                {
                    "kind": "bucket",
                    "message_bytes": GRADIENT_BYTES,
                    "seconds": [1e-3],
                    "correct": True,
                }
            ],
        }
    ]
)


def study_of(*rows, train_images=TRAIN_IMAGES):
    """The study whose timing table has these rows, everything else derived from it."""
    timing = timing_table(*rows)
    parts = communication(timing)
    return Study(
        timing,
        speedup(timing),
        parts,
        bandwidth(timing, parts, SWEEP, GRADIENT_BYTES),
        train_images,
    )


# An iteration communicates for 4 ms: T(2,128) = 18/2 + 196 · 4 ms, T(2,512) = 17/2 + 49 · 4 ms.
# Loading takes 0.2 s on one GPU and 0.1 s on two, so both estimates agree.
ONE_128 = timing_row(1, 128, 18.0, loader_seconds=0.2)
ONE_512 = timing_row(1, 512, 17.0, loader_seconds=0.2)
TWO_128 = timing_row(2, 128, 9.784, loader_seconds=0.1)
TWO_512 = timing_row(2, 512, 8.696, loader_seconds=0.1)
OUT_OF_MEMORY = [timing_row(gpus, 8192, status="oom") for gpus in (1, 2)]
CLEAN = study_of(ONE_128, ONE_512, TWO_128, TWO_512, *OUT_OF_MEMORY)


def changed(table, row, **values):
    """`table` with other values in the row numbered `row`."""
    table = table.copy()
    for column, value in values.items():
        table.loc[row, column] = value
    return table


def only_finding(study):
    table = audit(study)
    assert len(table) == 1, table.to_string()
    return table.iloc[0]


def test_a_clean_study_has_no_findings():
    table = audit(CLEAN)
    assert table.empty
    assert table.columns.tolist() == [
        *("check", "recipe", "strategy", "gpus", "batch_size"),
        *("severity", "message", "found", "expected"),
    ]


def test_compute_and_communication_that_are_not_the_total_are_an_error():
    broken = replace(CLEAN, communication=changed(CLEAN.communication, 0, total_seconds=10.0))
    found = only_finding(broken)
    assert (found.check, found.severity) == ("parts_differ_from_total", "error")
    assert (found.gpus, found.batch_size) == (2, 128)
    assert (found.found, found.expected) == (pytest.approx(9.784), 10.0)


def test_negative_communication_is_a_warning():
    # T(2,128) is as before, but one second more of it was loading: 8.684 - 17.8/2 = -0.216 s.
    stalled = timing_row(2, 128, 9.784, loader_seconds=1.1)
    found = only_finding(study_of(ONE_128, ONE_512, stalled, TWO_512))
    assert (found.check, found.severity) == ("negative_communication", "warning")
    assert found.found == pytest.approx(-0.216)
    assert "subtraction_without_loading" in found.message


def test_a_utilization_above_one_is_a_warning():
    broken = replace(CLEAN, bandwidth=changed(CLEAN.bandwidth, 2, utilization=1.1))
    found = only_finding(broken)
    assert (found.check, found.severity) == ("utilization_above_one", "warning")
    assert (found.batch_size, found.found, found.expected) == (512, 1.1, 1)


@pytest.mark.parametrize(
    ("column", "why"),
    [
        ("utilization", "the epoch took less time"),
        ("utilization_without_loading", "the device computed while the host waited"),
    ],
)
def test_a_time_below_what_the_measured_peak_allows_is_a_warning(column, why):
    rates = CLEAN.timing.assign(utilization=0.4, utilization_without_loading=1.0)
    assert audit(replace(CLEAN, utilization=rates)).empty
    found = only_finding(replace(CLEAN, utilization=changed(rates, 1, **{column: 1.6})))
    assert (found.check, found.severity) == ("above_the_matrix_peak", "warning")
    assert (found.gpus, found.batch_size, found.found) == (1, 512, 1.6)
    assert why in found.message


@pytest.mark.parametrize(
    ("view", "name"),
    [
        ("speedup", "speedup"),
        ("weak_speedup", "weak speedup"),
        ("fixed_global_batch_speedup", "fixed global batch speedup"),
    ],
)
def test_a_speedup_above_the_number_of_gpus_is_a_warning_in_each_view(view, name):
    # row 3 is N=2, b=128
    found = only_finding(replace(CLEAN, speedup=changed(CLEAN.speedup, 3, **{view: 2.09})))
    assert (found.check, found.severity) == ("speedup_above_gpus", "warning")
    assert (found.gpus, found.found, found.expected) == (2, 2.09, 2)
    assert found.message == f"{name} above the number of GPUs"


def test_a_speedup_of_exactly_n_is_in_order():
    assert audit(replace(CLEAN, speedup=changed(CLEAN.speedup, 3, speedup=2.0))).empty


def test_one_iterations_bytes_over_one_epochs_seconds_is_an_error():
    # 44,695,848 B / 0.784 s instead of 196 times as much
    one_iteration = GRADIENT_BYTES / 0.784 / 1e9
    broken = replace(CLEAN, bandwidth=changed(CLEAN.bandwidth, 0, bandwidth_gb_per_s=one_iteration))
    found = only_finding(broken)
    assert (found.check, found.severity) == ("bytes_not_multiplied_by_iterations", "error")
    assert found.found == pytest.approx(GRADIENT_BYTES)
    assert found.expected == pytest.approx(196 * GRADIENT_BYTES)


def test_iterations_other_than_the_epochs_own_are_no_way_round_it():
    table = changed(
        CLEAN.bandwidth,
        0,
        iterations=1,
        bytes_per_epoch=GRADIENT_BYTES,
        bandwidth_gb_per_s=GRADIENT_BYTES / 0.784 / 1e9,
    )
    checks = audit(replace(CLEAN, bandwidth=table)).check
    assert "bytes_not_multiplied_by_iterations" in set(checks)


def test_two_single_gpu_times_for_one_batch_size_are_an_error():
    # row 3 is N=2, b=128
    broken = replace(CLEAN, speedup=changed(CLEAN.speedup, 3, baseline_epoch_seconds=18.5))
    found = only_finding(broken)
    assert (found.check, found.severity) == ("two_baselines", "error")
    assert (found.gpus, found.batch_size) == (1, 128)
    assert (found.found, found.expected) == (18.5, 18.0)


def test_a_compute_time_of_another_single_gpu_time_is_an_error():
    # 9.25 = 18.5 / 2, with communication and total made to agree
    table = changed(CLEAN.communication, 0, compute_seconds=9.25, communication_seconds=0.534)
    found = only_finding(replace(CLEAN, communication=table))
    assert found.check == "two_baselines"
    assert (found.found, found.expected) == (18.5, 18.0)


def test_a_time_for_a_batch_larger_than_the_training_set_is_an_error():
    # 2 · 512 = 1024 > 1000; 1 · 512 fits
    found = only_finding(replace(CLEAN, train_images=1000))
    assert (found.check, found.severity) == ("batch_exceeds_dataset", "error")
    assert (found.gpus, found.batch_size, found.found, found.expected) == (2, 512, 1024, 1000)


def test_a_batch_of_exactly_the_training_set_is_in_order():
    assert audit(replace(CLEAN, train_images=1024)).empty


def test_loading_that_does_not_add_up_is_an_error():
    broken = replace(CLEAN, timing=changed(CLEAN.timing, 0, loader_seconds=0.5))
    found = only_finding(broken)
    assert (found.check, found.severity) == ("loading_does_not_add_up", "error")
    assert (found.found, found.expected) == (pytest.approx(18.3), 18.0)


def test_a_study_that_did_not_separate_loading_is_not_blamed_for_it():
    row = TWO_128 | {"epoch_seconds_without_loading": math.nan, "loader_seconds": math.nan}
    assert audit(study_of(ONE_128, ONE_512, row, TWO_512)).empty


def test_a_time_measured_once_is_pointed_out():
    found = only_finding(study_of(ONE_128, ONE_512, TWO_128, TWO_512 | {"count": 1}))
    assert (found.check, found.severity) == ("single_measurement", "info")
    assert (found.gpus, found.batch_size, found.found, found.expected) == (2, 512, 1, 3)


def test_communication_of_an_iteration_that_changes_with_the_batch_is_a_warning():
    # 4 ms an iteration at b=128, 10 ms at b=512: T(2,512) = 17/2 + 49 · 10 ms = 8.99 s.
    slow = timing_row(2, 512, 8.99, loader_seconds=0.1)
    table = audit(study_of(ONE_128, ONE_512, TWO_128, slow))
    assert set(table.check) == {"communication_varies_with_batch"}
    assert table.severity.tolist() == ["warning", "warning"]  # one for each estimate
    assert table.batch_size.tolist() == [512, 512]
    assert table.found.tolist() == [pytest.approx(0.010)] * 2
    assert table.expected.tolist() == [pytest.approx(0.004)] * 2


def test_communication_of_an_iteration_may_vary_by_a_factor_of_two():
    # 7.9 ms at b=512 against 4 ms at b=128
    slow = timing_row(2, 512, 8.5 + 49 * 0.0079, loader_seconds=0.1)
    assert audit(study_of(ONE_128, ONE_512, TWO_128, slow)).empty


def test_a_study_without_iterations_is_not_judged_by_them():
    rows = [row | {"iterations": math.nan} for row in (ONE_128, ONE_512, TWO_128, TWO_512)]
    assert audit(study_of(*rows)).empty


def test_the_published_a40_study_is_flagged_for_what_it_shows():
    # Communication per iteration by subtraction, N=4: b=32 (9.06 - 23.55/4)/391 = 8.11 ms,
    # b=128 (5.023 - 18.311/4)/98 = 4.54 ms, b=512 (5.16 - 19.704/4)/25 = 9.36 ms: a factor 2.06.
    table = audit(
        study_of(
            *[
                timing_row(gpus, size, seconds, count=1)
                for gpus, size, seconds in [
                    *((1, 32, 23.55), (1, 128, 18.311), (1, 512, 19.704)),
                    *((4, 32, 9.06), (4, 128, 5.023), (4, 512, 5.16)),
                ]
            ]
        )
    )
    assert table.check.value_counts().to_dict() == {
        "single_measurement": 6,
        "communication_varies_with_batch": 2,
    }
    worst = table[table.check == "communication_varies_with_batch"].iloc[0]
    assert (worst.gpus, worst.batch_size) == (4, 512)
    assert (worst.found, worst.expected) == (
        pytest.approx(9.36e-3, abs=1e-5),
        pytest.approx(4.54e-3, abs=1e-5),
    )
