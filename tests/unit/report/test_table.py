"""Tables made of a frame as a view says."""

import math

import pandas as pd
import pytest

from scaling.report.quantities import named
from scaling.report.table import Column, View


def cells(**row):
    """The cells of one row, with a column on `a`."""
    column = Column("a", "{:.0f}".format, name="a")
    view = View("t", "T", lambda frame: frame, [Column("key", name="key")], [column])
    table = view.make(pd.DataFrame([{"key": "k", **row}]))
    return [cell for line in table.rows for cell in line]


def test_an_empty_value_is_a_dash_or_its_status():
    assert [cell.text for cell in cells(a=2.0)] == ["k", "2"]
    assert [cell.text for cell in cells(a=math.nan, status="oom")] == ["k", "out of memory"]


def test_a_figure_says_what_it_is_of():
    place = {"recipe": "tuned", "strategy": "ddp", "gpus": 2, "batch_size": 512.0}
    _, cell = cells(a=2.0, **place)
    said = ' data-cell="tuned/ddp/2/512" data-quantity="a (k)" data-value="2"'
    assert cell.attributes == said and cell.__html__() == f"<span{said}>2</span>"


@pytest.mark.parametrize(
    ("bias", "shown"),
    [(0.5, "round(0.50000 × 100.00) = 50"), (0.0, "no bias"), (math.nan, "–")],
)
def test_a_layer_without_a_bias_says_so_and_one_that_was_not_recorded_says_nothing(bias, shown):
    row = {"largest_bias": bias, "accumulator_scale": 100.0, "bias_steps": 50.0}
    (of,) = pd.DataFrame([row]).itertuples()
    (column,) = named("largest_bias")
    assert column.cell(of).text == shown
