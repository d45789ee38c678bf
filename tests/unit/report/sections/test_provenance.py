"""The report's environments: a column for each, what all share said once."""

import pytest

from examples import report_tables
from examples.report_page import section

TITLE = "Environments of the grid’s runs"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return section(tmp_path_factory.mktemp("report"), "provenance", report_tables.make())


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
    assert "slurm gpus" not in [row[0] for row in page.rows(TITLE)]


def test_another_machine_is_another_column(tmp_path):
    tables = report_tables.make()
    tables["provenance"].loc[:9, "hosts"] = "node02"
    page = section(tmp_path, "provenance", tables)
    assert page.row(TITLE, "runs") == ["10", "80", "45"]
    assert page.row(TITLE, "hosts") == ["node02", "node01", "node01"]
