"""The fixed cost of a run on the page: its phases and parts."""

import pandas as pd
import pytest

from examples import report_tables
from examples.report_page import Page, section
from scaling.tables.timing import PARTS, PHASE_COLUMNS

TITLE = "Where the time of a run goes: course, ddp"
FIGURES = [*PHASE_COLUMNS, *PARTS, "run_seconds", "unmeasured_share"]


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> Page:
    return section(tmp_path_factory.mktemp("study"), "fixed_cost", report_tables.make())


def rows_of(page: Page, title: str, batch: str) -> list[list[str]]:
    """The rows of a batch size on 1, 2 and 4 GPUs, without its heading."""
    rows = page.rows(title)
    start = next(index for index, row in enumerate(rows) if row[0] == batch)
    return [rows[start][1:], *rows[start + 1 : start + 3]]


def forget(table: pd.DataFrame, cells: pd.Series) -> None:
    """As if these cells' records were from before the cost was measured."""
    table.loc[cells, FIGURES] = float("nan")
    table.loc[cells, "count"] = 0


def test_the_phases_and_the_parts_of_a_run_stand_beside_each_other(page):
    assert page.tables[TITLE][0] == [
        *("", "phases of the start-up, s", "parts of the run, s", "whole run")
    ]
    assert page.tables[TITLE][1] == [
        *("batch size per GPU", "GPUs", "launch", "imports", "join", "dataset", "recipe"),
        *("start-up", "warm-up", "measured", "other", "end", "seconds", "not measured"),
    ]
    # Batch 32 on 4 GPUs: 1 + 4 + 4 · 0.5 + 0.5 + 1 = 8.5 s to the first epoch, of 3.1 s; five of
    # them are 15.5 s, and 8.5 + 15.5 + 2 + 1 = 27, of which 27 - 9.3 = 17.7, 66 %, not measured.
    assert rows_of(page, TITLE, "32")[2] == [
        *("4", "1.00", "4.00", "2.00", "0.500", "1.00"),
        *("8.50", "6.20", "9.30", "2.00", "1.00", "27.0", "66 %"),
    ]


def test_a_run_without_figures_says_its_status(page):
    assert rows_of(page, TITLE, "2048")[0] == ["1", "timeout"]
    assert rows_of(page, "Where the time of a run goes: fast, ddp", "16384") == [
        *(["1", "oom"], ["2", "oom"], ["4", "infeasible"])
    ]


def test_a_run_that_diverged_has_figures_and_is_called_so(page):
    # Batch 16384 on 2 GPUs: 7.5 + 5 · 1.9 + 3 = 20.
    assert rows_of(page, TITLE, "16384")[1][-2:] == ["20.0 diverged", "72 %"]


def test_a_row_says_how_many_seeds_it_is_the_median_of(page, tmp_path):
    assert "each row is the run of median length of 3 seeds" in page.text
    tables = report_tables.make()
    tables["startup"]["count"] = tables["startup"]["count"].clip(upper=1)
    once = section(tmp_path, "fixed_cost", tables).text
    assert "each row is the only run of its cell, so its spread is unknown" in once
    assert "of median length of" not in once


def test_an_old_record_has_no_figures_and_the_table_says_so(page, tmp_path):
    tables = report_tables.make()
    startup = tables["startup"]
    forget(startup, startup["batch_size"] == 32)
    old = section(tmp_path, "fixed_cost", tables)
    assert rows_of(old, TITLE, "32") == [[gpus, "not recorded"] for gpus in ("1", "2", "4")]
    note = "not recorded: the run was made before these times were measured"
    assert note in old.text and note not in page.text
