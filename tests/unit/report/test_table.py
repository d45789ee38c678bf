"""Tables made of a frame as a specification says, and of a whole study by report/tables.yaml."""

import jinja2
import numpy as np
import pandas as pd
import pytest

from scaling.report.table import TableCell, TableSpec, evaluate, specs

FRAME = pd.DataFrame(
    {
        "recipe": ["course", "course", "tuned", "tuned"],
        "gpus": [1, 2, 1, 2],
        "batch_size": [128] * 4,
        "status": ["ok", "oom", "ok", "ok"],
        "seconds": [10.37, np.nan, 1.828, 1.0],
        "seconds_min": [9.857, np.nan, 1.828, 0.9],
        "seconds_max": [10.9, np.nan, 1.828, 1.1],
        "share": [0.021, np.nan, 0.5, np.nan],
        "unknown": [np.nan] * 4,
        "noisy": [True, False, False, False],
        "note": ["slow; hot", "slow", "", ""],
    }
)
SECONDS = {
    "value": "seconds | significant",
    "detail": "span('seconds')",
    "flags": {"noise": "noisy"},
}
COLUMNS = {"s": SECONDS, "share": "share | percent", "unknown": "unknown | percent"}


def texts(table):
    return [[cell.text for cell in row] for row in table.rows]


def test_a_row_has_its_figures_their_range_and_flags_and_an_empty_column_goes():
    table = TableSpec(
        "t", "T", "frame", {"recipe": "recipe ~ ' · ' ~ gpus"}, COLUMNS, note="note"
    ).make(FRAME)
    assert table.columns == [("recipe", ""), ("s", ""), ("share", "")] and table.groups == []
    assert table.rows[0][1] == TableCell("10.4", "9.86–10.9", ("noise",))
    assert texts(table)[1:] == [
        ["course · 2", "oom", ""],
        ["tuned · 1", "1.83", "50 %"],
        ["tuned · 2", "1.00", "–"],
    ]
    # One measured value has no range.
    assert table.rows[2][1].detail == ""
    assert table.notes == ["slow (2 cells)", "hot (1 cell)"]
    other = TableSpec("t", "T", "frame", {}, COLUMNS, note="'It is ' ~ note")
    assert other.make(FRAME[:2].drop(columns="batch_size")).notes == ["It is slow", "hot"]


def test_columns_across_a_value_have_a_group_for_each_and_a_dash_where_there_is_none():
    spec = TableSpec(
        *("t", "T", "frame", {"recipe": "recipe"}, COLUMNS),
        where="recipe == 'tuned' or gpus == 1",
        across="gpus",
        heading="gpus | gpus",
    )
    table = spec.make(FRAME)
    assert table.groups == [("", 1), ("1 GPU", 2), ("2 GPUs", 1)]
    assert texts(table) == [["course", "10.4", "2.1 %", "–"], ["tuned", "1.83", "50 %", "1.00"]]


def test_a_table_without_rows_is_none():
    assert TableSpec("t", "T", "frame", {}, COLUMNS, where="gpus > 9").make(FRAME) is None


def test_an_expression_on_an_empty_value_is_empty_and_a_wrong_one_an_error():
    row = {"a": None, "b": 2.0, "c": "text"}
    assert evaluate("(1e3 * a) | significant", row) is None
    assert evaluate("(1e3 * b) | significant", row) == "2,000"
    with pytest.raises(TypeError):
        evaluate("b * b * c", row)
    with pytest.raises(jinja2.UndefinedError):
        evaluate("absent | significant", row)


def in_the_report(part, name, column, **row):
    """The text and the detail of a column of report/tables.yaml, over one row."""
    (spec,) = (spec.columns[column] for spec in specs()[part] if spec.name == name)
    expressions = [spec] if isinstance(spec, str) else [spec["value"], spec["detail"]]
    return [evaluate(each, row) for each in expressions]


@pytest.mark.parametrize(
    ("value", "shown"),
    [(1.11e11, ["111 GFLOP/s", "110–112"]), (7.97e14, ["797 TFLOP/s", "796–798"])],
)
def test_a_peak_and_its_range_have_one_prefix(value, shown):
    low, high = (value + step * 10 ** (len(f"{value:.0f}") - 3) for step in (-1, 1))
    row = {"value": value, "value_min": low, "value_max": high, "unit": "FLOP/s"}
    assert in_the_report("limits", "peaks", "rate", **row) == shown


@pytest.mark.parametrize(
    ("bias", "shown"),
    [(0.5, "round(0.50000 × 100.00) = 50"), (0.0, "no bias"), (None, "")],
)
def test_a_layer_without_a_bias_says_so_and_one_that_was_not_recorded_says_nothing(bias, shown):
    row = {"largest_bias": bias, "accumulator_scale": 100.0, "bias_steps": 50.0}
    assert in_the_report("B", "biases", "of the largest b", **row) == [shown]
