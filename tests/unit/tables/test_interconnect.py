"""The all-reduce sweep: bandwidths as nccl-tests defines them, and the line through the times."""

import math

import pytest

from scaling.tables.limits import fit, interconnect


def sweep(rows, gpus=4, backend="nccl"):
    return {
        "gpus": gpus,
        "backend": backend,
        "rows": [
            {"kind": kind, "message_bytes": size, "seconds": seconds, "correct": correct}
            for kind, size, seconds, correct in rows
        ],
    }


def test_the_median_repeat_gives_the_bandwidths():
    # 3 GB in 0.03 s: algbw 100 GB/s; on 4 GPUs busbw = 100 · 2 · 3/4 = 150 GB/s.
    table = interconnect([sweep([("sweep", 3_000_000_000, [0.05, 0.02, 0.03], True)])])
    row = table.iloc[0]
    assert (row.seconds, row.seconds_min, row.seconds_max) == (0.03, 0.02, 0.05)
    assert row["count"] == 3
    assert row.algbw_gb_per_s == pytest.approx(100)
    assert row.busbw_gb_per_s == pytest.approx(150)


def test_the_fit_weighs_relative_errors_and_reports_standard_errors():
    # m = 1, 2, 3; t = 2, 4, 4. Weights W = 1/t² = (4, 1, 1)/16.
    # With the common factor left out: sum 6, mean m = 9/6 = 3/2, mean t = 16/6 = 8/3,
    # Smm = 4/4 + 1/4 + 9/4 = 7/2, Smt = 4/3 + 2/3 + 2 = 4: slope 8/7, intercept 8/3 - 12/7 = 20/21.
    # Residuals (-2, 16, -8)/21: chi² = (16 + 256 + 64)/441/16 = 1/21, one degree of freedom.
    # var(slope) = 1/21 · 16 / (7/2) = 32/147; var(intercept) = 1/21 · 16 · (1/6 + 9/14) = 272/441.
    rows = [("sweep", m, [t], True) for m, t in ((1, 2.0), (2, 4.0), (3, 4.0))]
    row = fit(interconnect([sweep(rows)])).iloc[0]
    assert row.seconds_per_byte == pytest.approx(8 / 7)
    assert row.latency_seconds == pytest.approx(20 / 21)
    assert row.seconds_per_byte_error == pytest.approx(math.sqrt(32 / 147))
    assert row.latency_error_seconds == pytest.approx(math.sqrt(272 / 441))


def test_fewer_than_three_sizes_give_no_figures():
    row = fit(interconnect([sweep([("sweep", m, [1.0 * m], True) for m in (1, 2)])])).iloc[0]
    assert row.points == 2
    assert row.drop(["gpus", "backend", "points"]).isna().all()


def test_the_fit_leaves_out_other_kinds_and_wrong_sums():
    rows = [("sweep", m, [2.0 * m], True) for m in (1, 2, 3)]
    rows += [("bucket", 4, [99.0], True), ("sweep", 5, [99.0], False)]
    row = fit(interconnect([sweep(rows)])).iloc[0]
    assert row.points == 3
    assert row.seconds_per_byte == pytest.approx(2.0)


def test_times_that_fall_with_size_have_no_asymptotic_bandwidth():
    rows = [("sweep", m, [t], True) for m, t in ((1, 3.0), (2, 2.0), (3, 1.0))]
    row = fit(interconnect([sweep(rows)])).iloc[0]
    assert row.seconds_per_byte == pytest.approx(-1.0)
    assert math.isnan(row.asymptotic_busbw_gb_per_s)
