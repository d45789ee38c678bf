"""Every check of the audit: silent on a clean study, and alone in finding its own fault."""

import math
from dataclasses import replace

import pytest

from examples.audit_example import (
    CLEAN,
    TWO_128,
    TWO_512,
    changed,
    only_finding,
    study_of,
    timed_but,
)
from examples.records import GRADIENT_BYTES
from scaling.audit.checks import audit


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
    assert audit(study_of(*timed_but(row))).empty


def test_a_time_measured_once_is_pointed_out():
    found = only_finding(study_of(*timed_but(TWO_512 | {"count": 1})))
    assert (found.check, found.severity) == ("single_measurement", "info")
    assert (found.gpus, found.batch_size, found.found, found.expected) == (2, 512, 1, 3)
