"""Tables from columns: missing values, cells that stand in for others, shared cells, groups."""

import pandas as pd

from scaling.report.table import (
    BATCH_SIZE,
    Column,
    TableCell,
    collect_notes,
    head,
    make_table,
    status,
    table_by_cell,
    table_by_gpus,
)

ROWS = pd.DataFrame(
    {
        "gpus": [2, 1, 2],
        "batch_size": [32, 32, 128],
        "seconds": [0.5, 1.0, float("nan")],
        "status": ["ok", "ok", "oom"],
        "note": ["slow; odd", "slow", ""],
    }
)
SECONDS = Column(
    "seconds",
    "seconds",
    lambda value: f"{value:.1f}",
    detail=lambda row: f"n = {row.gpus}",
    flags=lambda row: ("fast",) if row.seconds < 1 else (),
)


def unmeasured(row):
    return status(row.status) if row.status != "ok" else None


def test_a_cell_has_its_value_its_detail_and_its_flags():
    table = make_table("", ROWS, [SECONDS])
    assert table.rows[0] == [TableCell("0.5", detail="n = 2", flags=("fast",))]
    assert table.rows[1] == [TableCell("1.0", detail="n = 1")]


def test_without_a_value_there_is_a_dash_or_a_status_that_may_depend_on_the_row():
    columns = [
        Column("dash", "seconds"),
        Column("none", lambda row: None, missing="none"),
        Column("row", "seconds", missing=lambda row: f"no T(1, {row.batch_size})"),
    ]
    cells = make_table("", ROWS, columns).rows[2]
    assert cells == [TableCell("–"), status("none"), status("no T(1, 128)")]


def test_a_cell_that_stands_for_neighbours_reaches_over_them():
    again = Column("again", "seconds", missing="none")
    columns = [Column("batch", "batch_size", kind="head"), SECONDS, again]
    table = make_table("", ROWS, columns, instead=unmeasured)
    assert table.rows[2] == [head("128"), status("oom", columns=2)]
    # A status of missing values is one for each.
    none = [Column(name, lambda row: None, missing="none") for name in "ab"]
    assert make_table("", ROWS, none).rows[0] == [status("none"), status("none")]


def test_rows_share_a_cell_where_they_agree():
    table = table_by_cell("", ROWS, [SECONDS], unmeasured)
    heads = [row[0] for row in table.rows]
    assert heads == [head("32", rows=2), TableCell("2"), head("128")]
    assert [len(row) for row in table.rows] == [3, 2, 3]


def test_groups_are_of_neighbours_and_words_are_told_from_numbers():
    columns = [BATCH_SIZE, Column("a", "gpus", group="G"), Column("b", "note", kind="text")]
    table = make_table("", ROWS, columns)
    assert table.groups == [("", 1), ("G", 1), ("", 1)]
    assert table.text_columns == {"b"}
    assert make_table("", ROWS, [BATCH_SIZE, SECONDS]).groups == []


def test_each_number_of_gpus_has_a_group_and_a_cell_outside_the_grid_says_so():
    table = table_by_gpus("", ROWS, [SECONDS, SECONDS], instead=unmeasured)
    assert table.groups == [("", 1), ("1 GPU", 2), ("2 GPUs", 2)]
    assert [cell.text for cell in table.rows[0]] == ["32", "1.0", "1.0", "0.5", "0.5"]
    assert table.rows[1] == [head("128"), status("not in the grid", 2), status("oom", 2)]


def test_notes_name_the_cells_they_belong_to():
    assert collect_notes(ROWS, "note") == ["2 GPUs × 32, 1 GPU × 32: slow", "2 GPUs × 32: odd"]
