"""What instruments read becomes communication seconds of an epoch."""

import math

import pytest

from examples.records import GRADIENT_BYTES, epoch, record
from scaling.core.grid import Cell
from scaling.tables.bandwidth import bandwidth
from scaling.tables.communication import communication
from scaling.tables.limits import interconnect
from scaling.tables.measurements import readings
from scaling.tables.timing import timing

CELL = Cell("course", "ddp", 2, 128, 0)
ALONE = Cell("course", "ddp", 1, 128, 0)


def read(rank, estimate, iterations=10, **values):
    return {"rank": rank, "estimate": estimate, "iterations": iterations, **values}


def traced(rank, total, hidden):
    return read(
        rank,
        "profiler",
        communication_seconds=total,
        exposed_seconds=total - hidden,
        overlapped_seconds=hidden,
    )


def timed(rank, seconds, seconds_without):
    return read(rank, "without_communication", seconds=seconds, seconds_without=seconds_without)


def run(cell, seconds, found):
    made = record(cell, [epoch(number, seconds, iterations=200) for number in (2, 3, 4)])
    made["communication"]["readings"] = found
    return cell, made


RUNS = [
    run(ALONE, 20.0, []),
    run(
        CELL,
        12.0,
        [
            traced(0, 0.1, 0.04),
            traced(1, 0.3, 0.08),
            timed(0, [0.60, 0.70, 0.66], [0.50, 0.53, 0.52]),
            timed(1, [0.60, 0.71, 0.65], [0.40, 0.54, 0.51]),
            read(0, "ddp_log", 0, note="not logged"),
        ],
    ),
]


def row(table, estimate):
    return table[table["estimate"] == estimate].iloc[0]


def test_a_reading_is_the_median_over_ranks_of_one_iteration():
    table = readings(RUNS)
    assert table["estimate"].tolist() == ["without_communication", "profiler", "ddp_log"]
    profiler = row(table, "profiler")
    # Totals 0.01 and 0.03 s an iteration, hidden 0.004 and 0.008, exposed 0.006 and 0.022.
    assert profiler["communication_seconds"] == pytest.approx(0.02)
    assert profiler["exposed_seconds"] == pytest.approx(0.014)
    assert profiler["overlapped_seconds"] == pytest.approx(0.006)
    assert profiler["count"] == 1


def test_leaving_communication_out_gives_what_it_adds():
    without = row(readings(RUNS), "without_communication")
    # Of the slowest rank in each repeat: (0.60 - 0.50), (0.71 - 0.54), (0.66 - 0.52), all / 10.
    assert without["exposed_seconds"] == pytest.approx(0.014)
    assert without["count"] == 3
    assert without["spread_seconds"] == pytest.approx(0.007)
    assert math.isnan(without["overlapped_seconds"])
    assert math.isnan(row(readings(RUNS), "profiler")["spread_seconds"])


def test_a_missing_reading_says_why():
    assert row(readings(RUNS), "ddp_log")["note"] == "not logged"
    assert row(readings([(CELL, None)]), "profiler")["note"] == "not instrumented"


def test_an_epochs_communication_is_its_iterations_times_the_reading():
    table = communication(timing(RUNS), readings(RUNS))
    profiler = row(table, "profiler")
    assert profiler["communication_seconds"] == pytest.approx(200 * 0.014)
    assert profiler["compute_seconds"] == pytest.approx(12.0 - 200 * 0.014)
    assert profiler["overlapped_seconds"] == pytest.approx(200 * 0.006)
    assert profiler["moving_seconds"] == pytest.approx(200 * 0.02)
    assert math.isnan(row(table, "without_communication")["moving_seconds"])
    log = row(table, "ddp_log")
    assert math.isnan(log["communication_seconds"]) and log["note"] == "not logged"


def test_all_communication_is_the_median_of_the_ranks_totals_not_the_sum_of_medians():
    # Totals 0.1, 0.2 and 0.3 s; hidden 0.0, 0.18 and 0.02, exposed 0.1, 0.02 and 0.28 s.
    found = [traced(0, 0.1, 0.0), traced(1, 0.2, 0.18), traced(2, 0.3, 0.02)]
    runs = [run(CELL, 12.0, found)]
    parts = communication(timing(runs), readings(runs))
    profiler = row(parts, "profiler")
    assert profiler["moving_seconds"] == pytest.approx(20 * 0.2)
    assert profiler["exposed_seconds"] + profiler["overlapped_seconds"] == pytest.approx(20 * 0.12)
    assert profiler["compute_seconds"] + profiler["communication_seconds"] == pytest.approx(12.0)
    rates = bandwidth(timing(runs), parts, interconnect([]), GRADIENT_BYTES)
    assert row(rates, "profiler")["communication_seconds"] == pytest.approx(20 * 0.2)


def test_a_cell_that_took_no_longer_with_communication_is_flagged():
    found = [timed(0, [0.5], [0.6])]
    runs = [run(CELL, 12.0, found)]
    without = row(communication(timing(runs), readings(runs)), "without_communication")
    assert without["communication_seconds"] == pytest.approx(-2.0)
    assert without["note"] == "communication below 0: the epoch was no slower with it"
