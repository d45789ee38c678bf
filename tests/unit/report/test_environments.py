"""The report's environments: a column for each, what all share said once."""

import pytest

from examples import report_tables
from examples.report_page import render

TITLE = "Environments of the grid’s runs"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return render(tmp_path_factory.mktemp("report"), report_tables.make())


def test_equal_environments_are_one_column(page):
    assert page.tables[TITLE][0] == ["property", "E1", "E2"]
    assert page.row(TITLE, "runs") == ["90", "45"]
    assert len(page.rows("Runs")) == 135


def test_what_all_environments_share_is_said_once_and_what_differs_for_each(page):
    # The recipes differ in their options.
    assert page.row(TITLE, "recipe options") == ["loader_workers 2", "precision bf16"]
    assert page.row(TITLE, "hosts") == ["node01"]
    assert page.row(TITLE, "commit") == ["1fc5442e0c6f"]
    spans = [named["colspan"] for tag, named in page.elements if tag == "td" and "colspan" in named]
    assert "2" in spans


def test_a_property_that_no_environment_has_takes_no_row(page):
    assert "slurm gpus" not in [row[0] for row in page.rows(TITLE)]


def test_another_machine_is_another_column(tmp_path):
    tables = report_tables.make()
    tables["provenance"].loc[:9, "hosts"] = "node02"
    page = render(tmp_path, tables)
    assert page.row(TITLE, "runs") == ["10", "80", "45"]
    assert page.row(TITLE, "hosts") == ["node02", "node01", "node01"]


def test_what_the_table_leaves_out_is_said(page):
    assert "Sweeps, peaks, remedies, other experiments and Part B are not in these" in page.text
