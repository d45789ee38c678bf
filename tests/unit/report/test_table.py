"""Tables made of a frame as a specification says, and of a whole study by report/tables.yaml."""

import jinja2
import pandas as pd
import pytest

from scaling.report.table import TableSpec, evaluate, specs


def test_a_table_without_rows_is_none():
    spec = TableSpec("t", "T", "frame", {}, {}, where="gpus > 9")
    assert spec.make(pd.DataFrame({"gpus": [1]})) is None


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
    ("bias", "shown"),
    [(0.5, "round(0.50000 × 100.00) = 50"), (0.0, "no bias"), (None, "")],
)
def test_a_layer_without_a_bias_says_so_and_one_that_was_not_recorded_says_nothing(bias, shown):
    row = {"largest_bias": bias, "accumulator_scale": 100.0, "bias_steps": 50.0}
    assert in_the_report("B", "biases", "of the largest b", **row) == [shown]
