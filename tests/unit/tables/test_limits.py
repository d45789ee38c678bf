"""The line through a sweep where it has few sizes or odd times."""

import math

import pytest

from scaling.tables.limits import fit, interconnect


def sweep(*rows, gpus=4):
    found = [
        {"kind": kind, "message_bytes": size, "seconds": seconds, "correct": correct}
        | {"launch": "eager"}
        for kind, size, seconds, correct in rows
    ]
    return interconnect([{"gpus": gpus, "backend": "nccl", "rows": found}])


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
