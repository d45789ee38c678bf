"""What a machine can do at best, worked out from made-up repeats."""

import math

import pytest

from scaling.tables import limits
from scaling.tables.limits import fit, interconnect

COLUMNS = ["quantity", "precision", "unit", "value", "value_min", "value_max", "count", "peak"]


def sweep(*rows, gpus=4):
    found = [
        {"kind": kind, "message_bytes": size, "seconds": seconds, "correct": correct}
        | {"launch": "eager"}
        for kind, size, seconds, correct in rows
    ]
    return interconnect([{"gpus": gpus, "backend": "nccl", "rows": found}])


def product(size, seconds, precision="bf16"):
    kind = {"quantity": "matrix_product", "precision": precision, "matrix_size": size}
    return {**kind, "state": "sprint", "seconds": seconds}


def peaks(*rows):
    return limits.peaks({"rows": list(rows)})


def test_the_median_repeat_gives_the_bandwidths():
    # 3 GB in 0.03 s: algbw 100 GB/s; on 4 GPUs busbw = 100 · 2 · 3/4 = 150 GB/s.
    row = sweep(("sweep", 3_000_000_000, [0.05, 0.02, 0.03], True)).iloc[0]
    assert (row.seconds, row.seconds_min, row.seconds_max) == (0.03, 0.02, 0.05)
    assert row["count"] == 3
    assert (row.algbw_gb_per_s, row.busbw_gb_per_s) == pytest.approx((100, 150))


def test_the_fit_weighs_relative_errors_and_reports_standard_errors():
    # m = 1, 2, 3; t = 2, 4, 4. Weights W = 1/t² = (4, 1, 1)/16.
    # With the common factor left out: sum 6, mean m = 9/6 = 3/2, mean t = 16/6 = 8/3,
    # Smm = 4/4 + 1/4 + 9/4 = 7/2, Smt = 4/3 + 2/3 + 2 = 4: slope 8/7, intercept 8/3 - 12/7 = 20/21.
    # Residuals (-2, 16, -8)/21: chi² = (16 + 256 + 64)/441/16 = 1/21, one degree of freedom.
    # var(slope) = 1/21 · 16 / (7/2) = 32/147; var(intercept) = 1/21 · 16 · (1/6 + 9/14) = 272/441.
    rows = [("sweep", m, [t], True) for m, t in ((1, 2.0), (2, 4.0), (3, 4.0))]
    # Other kinds and wrong sums are left out.
    row = fit(sweep(*rows, ("bucket", 4, [99.0], True), ("sweep", 5, [99.0], False))).iloc[0]
    assert row.points == 3
    assert (row.seconds_per_byte, row.latency_seconds) == pytest.approx((8 / 7, 20 / 21))
    assert row.seconds_per_byte_error == pytest.approx(math.sqrt(32 / 147))
    assert row.latency_error_seconds == pytest.approx(math.sqrt(272 / 441))
    # On 4 GPUs 2 · 3/4 bytes in 8/7 s
    assert row.asymptotic_busbw_gb_per_s == pytest.approx(1.5 * 7 / 8 / 1e9)


def test_too_few_sizes_give_no_line_and_falling_times_no_bandwidth():
    row = fit(sweep(*(("sweep", m, [1.0 * m], True) for m in (1, 2)))).iloc[0]
    assert row.points == 2 and row.drop(["gpus", "backend", "points", "note"]).isna().all()
    rows = [("sweep", m, [t], True) for m, t in ((1, 3.0), (2, 2.0), (3, 1.0))]
    row = fit(sweep(*rows)).iloc[0]
    assert row.seconds_per_byte < 0
    assert math.isnan(row.asymptotic_busbw_gb_per_s)


def test_the_latency_is_at_most_the_smallest_messages_time():
    rows = [("sweep", m, [t], True) for m, t in ((1, 4.0), (2, 9.0), (3, 4.0), (4, 4.0))]
    row = fit(sweep(*rows)).iloc[0]
    # Without a bound it is above 4. With it, weights 1/t²: the sum of m (t - 4) / t², 10/81, over
    # that of m² / t², 26/16 + 4/81.
    assert row.latency_seconds == 4
    assert row.seconds_per_byte == pytest.approx(10 / 81 / (26 / 16 + 4 / 81))


def test_the_note_says_whether_launches_are_in_the_latency():
    table = sweep(*(("sweep", m, [1.0 * m], True) for m in (1, 2, 3)))
    assert "launch by Python in it" in fit(table)["note"][0]
    assert "no launch by Python" in fit(table.assign(launch="graph"))["note"][0]


def test_a_matrix_product_costs_two_operations_for_each_of_n_cubed():
    # 2 · 1000³ = 2e9 operations; 2, 4 and 5 ms.
    row = peaks(product(1000, [4e-3, 2e-3, 5e-3])).iloc[0]
    assert row[COLUMNS].tolist() == ["matrix_product", "bf16", "FLOP/s", 5e11, 4e11, 1e12, 3, True]


def test_a_copy_within_a_device_reads_and_writes_and_one_between_gpus_crosses_once():
    within = {"quantity": "device_copy", "copy_bytes": 10**9, "seconds": [1e-3]}
    table = peaks(within, {**within, "quantity": "gpu_to_gpu_copy"})
    assert table["value"].tolist() == [2e12, 1e12]
    assert table["unit"].tolist() == ["B/s", "B/s"]


def test_the_peak_of_a_precision_is_its_best_size():
    # 2e9 operations in 4 ms and 16e9 in 20 ms: 500 and 800 GFLOP/s; the large one is faster at
    # its median only. float32 has a peak of its own.
    table = peaks(
        product(1000, [4e-3, 4e-3, 4e-3]),
        product(2000, [20e-3, 19e-3, 90e-3]),
        product(1000, [40e-3], precision="float32"),
    )
    assert table["peak"].tolist() == [False, True, True]
    assert table.loc[table["peak"], ["precision", "value"]].to_numpy().tolist() == [
        ["bf16", 8e11],
        ["float32", 5e10],
    ]
    # The figure of steady work is apart from a sprint's.
    assert set(table["state"]) == {"sprint"}
    steady = {"rows": [product(1000, [4e-3]), product(1000, [5e-3]) | {"state": "sustained"}]}
    table = limits.peaks(steady)
    assert table["peak"].all()
    assert table[["state", "value"]].to_numpy().tolist() == [["sprint", 5e11], ["sustained", 4e11]]
