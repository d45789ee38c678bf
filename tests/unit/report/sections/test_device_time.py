"""A step on the device, on the page: compute, communication alone, nothing, by a trace."""

import pandas as pd

from examples import report_tables
from examples.report_page import Page, section
from scaling.tables import schema

TITLE = "A step on the device: course, ddp"
CELLS = {"recipe": "course", "strategy": "ddp", "batch_size": 32}


def page(folder, *rows: dict) -> Page:
    table = pd.DataFrame(rows, columns=schema.columns("device_time"))
    return section(folder, "limits", report_tables.make() | {"device_time": table})


def traced(gpus: int, **values: object) -> dict:
    """A step of 8 ms: 3 ms of compute, 4 ms of communication alone, nothing in 1 ms."""
    seconds = {"step_seconds": 0.008, "busy_seconds": 0.007, "compute_seconds": 0.003}
    seconds |= {"gap_seconds": 0.001, "gap_seconds_min": 0.0005, "gap_seconds_max": 0.002}
    return {**CELLS, "gpus": gpus, **seconds, "kernels": 1234, "count": 3, "note": "", **values}


def test_a_step_is_divided_into_compute_communication_alone_and_nothing(tmp_path):
    found = page(tmp_path, traced(1, busy_seconds=0.007, compute_seconds=0.007), traced(2))
    one, two = found.rows(TITLE)
    assert one == ["32", "1", "8.00 n = 3", "7.00", "–", "1.00 0.500–2.00, 12 %", "1,234"]
    assert two == ["2", "8.00 n = 3", "3.00", "4.00", "1.00 0.500–2.00, 12 %", "1,234"]


def test_a_single_seed_has_no_range(tmp_path):
    (row,) = page(tmp_path, traced(2, count=1)).rows(TITLE)
    assert row[2] == "8.00 n = 1" and row[5] == "1.00 12 %"


def test_waiting_that_a_record_does_not_tell_from_compute_is_called_neither(tmp_path):
    (row,) = page(tmp_path, traced(2, compute_seconds=None)).rows(TITLE)
    assert row[2:5] == ["8.00 n = 3", "together 7.00", "1.00 0.500–2.00, 12 %"]


def test_a_gap_below_0_is_flagged_and_a_cell_without_a_trace_says_why(tmp_path):
    below = dict.fromkeys(["gap_seconds", "gap_seconds_min", "gap_seconds_max"], -0.001)
    untraced = {**CELLS, "gpus": 4, "count": 0, "note": "the device's time was not read"}
    found = page(tmp_path, traced(2, **below), untraced)
    first, second = found.rows(TITLE)
    assert "−12 % negative" in first[5]
    assert second == ["4", "not traced"]
    assert "4 GPUs × 32: the device's time was not read" in found.text


def test_a_study_that_traced_no_device_says_why(tmp_path):
    note = "a CPU runs no kernels"
    found = page(tmp_path, {**CELLS, "gpus": 2, "count": 0, "note": note})
    assert TITLE not in found.tables
    assert f"No step can be shown: {note}." in found.text
