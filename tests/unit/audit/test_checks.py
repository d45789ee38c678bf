"""Every check of the audit: silent on a clean study, and alone in finding its own fault."""

import math
from dataclasses import replace

import pytest

from examples.audit_example import (
    CLEAN,
    TWO_128,
    TWO_512,
    but,
    only_finding,
    study_of,
    timed_but,
)
from examples.records import GRADIENT_BYTES
from scaling.audit.checks import audit
from scaling.tables import schema

LOADING = ["epoch_seconds_without_loading", "loader_seconds"]
ONE_ITERATION = GRADIENT_BYTES / 0.784 / 1e9
"""GB/s of 44,695,848 B over the communication of an epoch, instead of 196 times as much."""


@pytest.mark.parametrize(
    "study",
    [
        CLEAN,
        # A batch of exactly the training set; loading that was not measured apart.
        replace(CLEAN, train_images=1024),
        study_of(*timed_but(TWO_128 | dict.fromkeys(LOADING, math.nan))),
        but("speedup", 3, speedup=2.0),
    ],
)
def test_a_clean_study_has_no_findings(study):
    table = audit(study)
    assert table.empty and table.columns.tolist() == schema.columns("audit")


@pytest.mark.parametrize(
    ("study", "check", "cell", "figures"),
    [
        (
            *(but("communication", 0, total_seconds=10.0), "parts_differ_from_total"),
            *((2, 128), (9.784, 10.0)),
        ),
        (
            but("bandwidth", 0, bandwidth_gb_per_s=ONE_ITERATION),
            "bytes_not_multiplied_by_iterations",
            *((2, 128), (GRADIENT_BYTES, 196 * GRADIENT_BYTES)),
        ),
        # row 3 is N=2, b=128
        (but("speedup", 3, baseline_epoch_seconds=18.5), "two_baselines", (1, 128), (18.5, 18.0)),
        # 9.25 = 18.5 / 2, with communication and total made to agree
        (
            but("communication", 0, compute_seconds=9.25, communication_seconds=0.534),
            *("two_baselines", (1, 128), (18.5, 18.0)),
        ),
        # 2 · 512 = 1024 > 1000; 1 · 512 fits
        (replace(CLEAN, train_images=1000), "batch_exceeds_dataset", (2, 512), (1024, 1000)),
        (but("timing", 0, loader_seconds=0.5), "loading_does_not_add_up", (1, 128), (18.3, 18.0)),
        (study_of(*timed_but(TWO_512 | {"count": 1})), "single_measurement", (2, 512), (1, 3)),
    ],
)
def test_each_fault_is_found_by_its_own_check_alone(study, check, cell, figures):
    found = only_finding(study)
    severity = "info" if check == "single_measurement" else "error"
    assert (found.check, found.severity) == (check, severity)
    assert (found.gpus, found.batch_size) == cell
    assert (found.found, found.expected) == pytest.approx(figures)


def test_iterations_other_than_the_epochs_own_are_no_way_round_it():
    one = {"iterations": 1, "bytes_per_epoch": GRADIENT_BYTES, "bandwidth_gb_per_s": ONE_ITERATION}
    checks = audit(but("bandwidth", 0, **one)).check
    assert "bytes_not_multiplied_by_iterations" in set(checks)
