"""The all-reduce sweep: bandwidths as nccl-tests defines them, and the line through the times."""

import math

import pytest

from scaling.tables.limits import fit, interconnect, ring_factor


def sweep(rows, gpus=4, backend="nccl"):
    return {
        "gpus": gpus,
        "backend": backend,
        "rows": [
            {"kind": kind, "message_bytes": size, "seconds": seconds, "correct": correct}
            for kind, size, seconds, correct in rows
        ],
    }


def test_a_ring_sends_twice_all_but_one_share():
    assert [ring_factor(n) for n in (1, 2, 4)] == [0.0, 1.0, 1.5]


def test_the_median_repeat_gives_the_bandwidths():
    # 3 GB in 0.03 s: algbw 100 GB/s; on 4 GPUs busbw = 100 · 2 · 3/4 = 150 GB/s.
    table = interconnect([sweep([("sweep", 3_000_000_000, [0.05, 0.02, 0.03], True)])])
    row = table.iloc[0]
    assert (row.seconds, row.seconds_min, row.seconds_max) == (0.03, 0.02, 0.05)
    assert row["count"] == 3
    assert row.algbw_gb_per_s == pytest.approx(100)
    assert row.busbw_gb_per_s == pytest.approx(150)


def test_an_even_number_of_repeats_takes_the_mean_of_the_middle_two():
    table = interconnect([sweep([("sweep", 1000, [1.0, 4.0, 2.0, 9.0], True)])])
    assert table.iloc[0].seconds == 3.0  # (2 + 4) / 2


def test_rows_come_by_gpus_kind_and_size():
    four = sweep([("sweep", 2, [1.0], True), ("sweep", 1, [1.0], True), ("bucket", 3, [1.0], True)])
    two = sweep([("sweep", 4, [1.0], True)], gpus=2)
    table = interconnect([four, two])
    assert table[["gpus", "kind", "message_bytes"]].values.tolist() == [
        [2, "sweep", 4],
        [4, "bucket", 3],
        [4, "sweep", 1],
        [4, "sweep", 2],
    ]


def test_times_on_a_line_give_back_its_latency_and_slope():
    # 30 µs + m / 300 GB/s; on 4 GPUs the bus then carries 1.5 · 300 = 450 GB/s.
    rows = [("sweep", m, [30e-6 + m / 300e9], True) for m in (4096, 10**6, 10**8, 10**9)]
    row = fit(interconnect([sweep(rows)])).iloc[0]
    assert row.latency_seconds == pytest.approx(30e-6)
    assert row.seconds_per_byte == pytest.approx(1 / 300e9)
    assert row.asymptotic_busbw_gb_per_s == pytest.approx(450)
    assert row.points == 4
    assert row.latency_error_seconds == pytest.approx(0, abs=1e-12)


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


def test_each_number_of_gpus_has_its_own_line():
    sweeps = [
        sweep([("sweep", m, [slope * m], True) for m in (1, 2, 3)], gpus=gpus)
        for gpus, slope in ((4, 2.0), (2, 5.0))
    ]
    table = fit(interconnect(sweeps))
    assert table.gpus.tolist() == [2, 4]
    assert table.seconds_per_byte.tolist() == [pytest.approx(5.0), pytest.approx(2.0)]


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


def test_no_sweep_at_all_gives_tables_without_rows():
    table = interconnect([])
    assert table.empty
    assert fit(table).empty
