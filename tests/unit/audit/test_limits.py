"""The audit's physical limits: what is beyond one is a warning, what explains it makes a remark."""

import math
from dataclasses import replace

import pytest

from examples.audit_example import CLEAN, changed, only_finding, study_of, timed_but
from examples.records import timing_row
from scaling.audit.checks import audit


def findings(check, *rows):
    """Severity and message of each finding of one check on the study of these timing rows."""
    table = audit(study_of(*rows))
    table = table[table.check == check]
    return list(zip(table.severity, table.message, strict=True))


def test_negative_communication_is_a_warning():
    # T(2,128) is as before, but one second more of it was loading: 8.684 - 17.8/2 = -0.216 s.
    stalled = timing_row(2, 128, 9.784, loader_seconds=1.1)
    found = only_finding(study_of(*timed_but(stalled)))
    assert (found.check, found.severity) == ("negative_communication", "warning")
    assert found.found == pytest.approx(-0.216)
    assert "subtraction_without_loading" in found.message


def test_communication_below_zero_within_noise_is_a_remark():
    # 8.4 - 17 / 2 = -0.1 s, where the times range over 0.4 s each
    rows = [timing_row(gpus, 512, seconds, spread=0.2) for gpus, seconds in ((1, 17.0), (2, 8.4))]
    negative = "communication below 0; within noise"
    assert findings("negative_communication", *rows) == [
        ("info", f"subtraction: {negative}"),
        ("info", f"subtraction_without_loading: {negative}"),
    ]


@pytest.mark.parametrize(("spread", "count"), [(0.05, 3), (0.0, 1)])
def test_communication_below_zero_that_no_pair_of_times_makes_positive_is_a_warning(spread, count):
    # 8.4 - 17 / 2 = -0.1 s is less than the two ranges together, 0.1 + 0.1 / 2 s, but even
    # 8.45 - 16.95 / 2 is below 0: the speedup is above N beyond noise.
    rows = [
        timing_row(gpus, 512, seconds, spread=spread, count=count)
        for gpus, seconds in ((1, 17.0), (2, 8.4))
    ]
    found = findings("negative_communication", *rows)
    assert [severity for severity, _ in found] == ["warning", "warning"]


def used(estimate, moving, strategy="ddp"):
    """The finding on a cell whose utilization by `estimate` is 110 %."""
    named = {"estimate": estimate, "strategy": strategy}
    table = CLEAN.communication.assign(moving_seconds=moving, **named)
    rates = changed(CLEAN.bandwidth.assign(**named), 2, utilization=1.1)
    one = table.gpus.eq(2) & table.batch_size.eq(512)
    first = one & ~one.duplicated()
    found = audit(replace(CLEAN, communication=table[first], bandwidth=rates[2:3]))
    return found[found.check == "utilization_above_one"].iloc[0]


def test_a_utilization_above_one_by_an_estimate_that_sees_all_communication_is_a_warning():
    found = used("profiler", moving=0.01)
    assert (found.severity, found.message) == ("warning", "profiler: utilization above 100 %")
    assert (found.batch_size, found.found, found.expected) == (512, 1.1, 1)


@pytest.mark.parametrize("estimate", ["subtraction", "without_communication"])
def test_a_utilization_above_one_of_exposed_communication_alone_is_a_remark(estimate):
    found = used(estimate, moving=math.nan)
    assert found.severity == "info"
    assert found.message == (
        f"{estimate}: utilization above 100 %; "
        "the estimate does not see communication behind computation"
    )


def test_data_parallel_hides_no_communication_that_would_explain_a_utilization_above_one():
    assert used("subtraction", moving=math.nan, strategy="dp").severity == "warning"


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


STRONG, WEAK = "speedup above the number of GPUs", "weak speedup above the number of GPUs"
FIXED = "fixed global batch speedup above the number of GPUs"
PARTIAL = "a partial last batch counts as a whole step"


def above(*rows):
    return findings("speedup_above_gpus", *rows)


@pytest.mark.parametrize(("count", "spread"), [(3, 0.1), (1, 0.0)])
def test_a_speedup_above_the_number_of_gpus_is_a_warning(count, spread):
    # 17 / 8 = 2.125, at least 16.9 / 8.1 = 2.09; the steps, 98 and 49, give the same weak speedup
    rows = [
        timing_row(gpus, 512, seconds, spread=spread, count=count)
        for gpus, seconds in ((1, 17.0), (2, 8.0))
    ]
    assert above(*rows) == [("warning", STRONG), ("warning", WEAK)]
    found = audit(study_of(*rows)).query("check == 'speedup_above_gpus'").iloc[0]
    assert (found.gpus, found.found, found.expected) == (2, 2.125, 2)


def test_a_speedup_above_the_number_of_gpus_within_noise_is_a_remark():
    # 17 / 8 = 2.125, but 16.5 / 8.5 = 1.94
    rows = [timing_row(gpus, 512, seconds, spread=0.5) for gpus, seconds in ((1, 17.0), (2, 8.0))]
    assert above(*rows) == [
        ("info", f"{STRONG}; within noise"),
        ("info", f"{WEAK}; within noise"),
    ]


@pytest.mark.parametrize(
    ("seconds", "spread", "expected"),
    [
        # 7 steps on one GPU and 4 on two: 17 / 9 = 1.89, and weak 2 · (17 / 7) / (9 / 4) = 2.16
        (9.0, 0.1, [("info", f"{WEAK}; {PARTIAL}")]),
        (8.0, 0.1, [("warning", STRONG), ("warning", WEAK)]),
        (
            8.0,
            0.5,
            [("info", f"{STRONG}; within noise"), ("info", f"{WEAK}; {PARTIAL}; within noise")],
        ),
    ],
)
def test_a_partial_last_batch_explains_a_weak_speedup_above_n_but_no_strong_one(
    seconds, spread, expected
):
    rows = [timing_row(1, 8192, 17.0, spread=spread), timing_row(2, 8192, seconds, spread=spread)]
    assert above(*rows) == expected


@pytest.mark.parametrize(
    ("spread", "expected"),
    [(0.1, ("warning", FIXED)), (1.0, ("info", f"{FIXED}; within noise"))],
)
def test_the_noise_of_a_fixed_global_batch_is_that_of_the_time_it_is_held_against(spread, expected):
    # 19 / 9 = 2.11 at least 18.9 / 9.1 = 2.08, or with the larger spread 18 / 10 = 1.8
    rows = [
        timing_row(1, 512, 17.0, spread=spread),
        timing_row(1, 1024, 19.0, spread=spread),
        timing_row(2, 512, 9.0, spread=spread),
    ]
    assert above(*rows) == [expected]


def test_communication_of_an_iteration_that_changes_with_the_batch_is_a_warning():
    # 4 ms an iteration at b=128, 10 ms at b=512: T(2,512) = 17/2 + 49 · 10 ms = 8.99 s.
    slow = timing_row(2, 512, 8.99, loader_seconds=0.1)
    table = audit(study_of(*timed_but(slow)))
    assert set(table.check) == {"communication_varies_with_batch"}
    assert table.severity.tolist() == ["warning", "warning"]  # one for each estimate
    assert table.batch_size.tolist() == [512, 512]
    assert table.found.tolist() == [pytest.approx(0.010)] * 2
    assert table.expected.tolist() == [pytest.approx(0.004)] * 2


def test_a_change_with_the_batch_that_noise_may_have_made_is_a_remark():
    # 10 ms ± 4 ms an iteration at b=512, so at least 6 ms, which is no more than twice 4 ms.
    slow = timing_row(2, 512, 8.99, loader_seconds=0.1, spread=0.1)
    found = findings("communication_varies_with_batch", *timed_but(slow))
    assert [severity for severity, _ in found] == ["info", "info"]
    assert all(message.endswith("(in seconds); within noise") for _, message in found)


def test_communication_of_an_iteration_may_vary_by_a_factor_of_two():
    # 7.9 ms at b=512 against 4 ms at b=128
    slow = timing_row(2, 512, 8.5 + 49 * 0.0079, loader_seconds=0.1)
    assert audit(study_of(*timed_but(slow))).empty
