"""Question 3 on the page: communication by each estimate, bandwidth, the interconnect."""

import re

import pandas as pd
import pytest

from examples import report_tables
from examples.report_page import Page, section
from scaling.core.grid import CELL_KEYS


def show(folder, tables) -> Page:
    """The sections on communication and on bandwidth in one page."""
    return section(folder, ("communication", "bandwidth"), tables)


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> Page:
    return show(tmp_path_factory.mktemp("study"), report_tables.make())


def test_table_2_splits_each_epoch_by_each_estimate(page):
    rows = page.rows("Table 2: course, ddp")
    assert rows[0] == ["32", "subtraction", "4.90", "0.700", "12 %", "2.45", "0.650", "21 %"]
    assert rows[1][:4] == ["subtraction without loading", "4.70", "0.600", "11 %"]


def test_table_2_flags_negative_communication(page):
    rows = page.rows("Table 2: course, ddp")
    assert rows[4][:5] == ["512", "subtraction", "1.50", "−0.0100 negative within noise", "−0.7 %"]
    assert "2 GPUs × 512: communication below 0" in page.text


def instrumented() -> dict[str, pd.DataFrame]:
    """A study of DDP on 2 GPUs whose traces and timed iterations were read, but no log of DDP.

    Each iteration communicates for 1 ms, 0.4 ms of it behind computation.
    """
    timing = report_tables.cells(missing=False)
    timing = timing[(timing["strategy"] == "ddp") & (timing["recipe"] == "course")]
    timing = timing[(timing["gpus"] <= 2) & (timing["batch_size"] <= 512)]
    cells = timing[timing["gpus"] == 2][CELL_KEYS]
    seconds = {"communication_seconds": 1e-3, "exposed_seconds": 6e-4, "overlapped_seconds": 4e-4}
    seconds |= {"count": 2, "note": ""}
    read = [
        cells.assign(estimate="without_communication", exposed_seconds=4.8e-4, count=2, note=""),
        cells.assign(estimate="profiler", **seconds),
        cells.assign(estimate="ddp_log", count=0, note="no log"),
    ]
    read[0] = read[0].assign(spread_seconds=4.8e-5)
    read[0].loc[read[0]["batch_size"] == 128, "spread_seconds"] = 4.9e-4
    read[1].loc[read[1]["batch_size"] == 512, ["exposed_seconds", "note"]] = [None, "no trace"]
    return report_tables.make() | report_tables.derive(timing, pd.concat(read))


def test_instruments_have_rows_beside_the_subtractions(tmp_path):
    page = show(tmp_path, instrumented())
    rows = page.rows("Table 2: course, ddp")
    # 625 iterations of 2 × 32 images, 5.3 s without loading: 0.3 s; 0.375 and 0.25 s.
    assert rows[2] == ["without communication", "5.00", "0.300", "5.7 %"]
    assert rows[3] == ["profiler", "4.92", "0.375 exposed 0.375, overlapped 0.250", "7.1 %"]
    # Nothing of 512 was traced, and DDP logged nothing anywhere.
    assert rows[11] == ["profiler", "no reading"]
    assert len(rows) == 12
    assert "2 GPUs × 512: no trace" in page.text
    assert "2 GPUs × 32, 2 GPUs × 128, 2 GPUs × 512: no “ddp log”: no log" in page.text
    # What is overlapped travels as well: 0.625 s.
    assert page.rows("Table 3: course, ddp")[3][:2] == ["profiler", "0.625"]


def test_an_overlap_that_is_rounding_alone_is_none(tmp_path):
    tables = instrumented()
    timing = report_tables.cells(missing=False)
    cells = timing[(timing["gpus"] == 2) & (timing["batch_size"] == 32)][CELL_KEYS]
    seconds = {"communication_seconds": 1e-3, "exposed_seconds": 1e-3, "overlapped_seconds": 5e-19}
    seconds["spread_seconds"] = float("nan")
    read = cells.assign(estimate="profiler", **seconds, count=1, note="")
    tables |= report_tables.derive(timing, read)
    row = show(tmp_path, tables).rows("Table 2: course, dp")[2]
    assert row[:3] == ["profiler", "13.2", "0.625 exposed 0.625, overlapped 0"]


def test_an_instrument_is_within_noise_where_its_readings_range_as_far(tmp_path):
    page = show(tmp_path, instrumented())
    rows = page.rows("Table 2: course, ddp")
    assert rows[2][0] == rows[6][0] == "without communication"
    assert "within noise" not in rows[2][2] and "within noise" in rows[6][2]
    rows = page.rows("Table 3: course, ddp")
    assert "within noise" not in rows[2][1] and "within noise" in rows[6][1]


def test_a_study_that_did_not_time_its_loading_says_so(tmp_path):
    timing = report_tables.cells(missing=False)
    without = [name for name in timing if "loading" in name]
    page = show(
        tmp_path,
        report_tables.make()
        | report_tables.derive(timing.assign(**dict.fromkeys(without, float("nan")))),
    )
    assert page.rows("Table 2: course, ddp")[1][1] == "loading unknown"


def test_table_3_multiplies_bytes_by_iterations(page):
    # A ring of 2 sends K = 44.7 MB; 40000 / 64 = 625 iterations; 27.9 GB / 0.7 s = 39.9 GB/s.
    row = page.rows("Table 3: course, ddp")[0]
    assert row[:8] == [*("32", "2", "44.7 MB", "625", "27.9 GB", "subtraction", "0.700", "39.9")]


def test_table_3_has_no_bandwidth_for_negative_communication(page):
    row = page.rows("Table 3: course, ddp")[8]
    assert row[:2] == ["512", "2"]
    assert row[6:8] == ["−0.0100 within noise", "negative"]


def test_table_3_has_one_row_for_a_cell_without_a_time(page):
    rows = [row for row in page.rows("Table 3: course, ddp") if row[0] == "16384"]
    # 2 GPUs diverged, which takes as long as any other, in two estimates; 4 are infeasible.
    assert [row[1] for row in rows] == ["2", "4"]
    assert rows[1] == ["16384", "4", "infeasible"]


def test_the_interconnect_shows_its_fit(page):
    row = page.row("Time of an all-reduce of m bytes, fitted as α + β·m", "2 GPUs, nccl")
    assert re.fullmatch(r"2[78]\.\d ± \S+", row[0])
    assert row[3] == "4"


def test_without_a_sweep_the_page_says_that_none_was_made(tmp_path):
    tables = report_tables.make()
    tables["interconnect"] = tables["interconnect"][:0]
    tables["interconnect_fit"] = tables["interconnect_fit"][:0]
    tables["bandwidth"][["peak_gb_per_s", "utilization"]] = None
    page = show(tmp_path, tables)
    assert "The interconnect was not measured in this study" in page.text
    assert page.rows("Table 3: course, ddp")[0][-2:] == ["no sweep", "no peak"]
