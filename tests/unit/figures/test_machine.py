"""What a reader sees of the machine's link, of a step and of a run."""

import pytest

from examples import report_tables
from examples.drawn import notes, panel, words
from scaling.figures.machine import draw_bandwidth, draw_startup, draw_step
from scaling.tables import schema

TABLES = report_tables.make()
CELL = {"recipe": "tuned", "strategy": "ddp", "gpus": 2, "batch_size": 64}


def test_the_link_alone_and_in_training_lie_at_their_bytes():
    axes = panel(
        draw_bandwidth(TABLES["interconnect"], TABLES["bandwidth"]), "All-reduce on 2 GPUs"
    )
    swept, *_ = axes.lines
    assert list(swept.get_xdata()) == [4096, 1 << 20, 44_695_848, 1 << 30]
    assert any("· bandwidth.csv" in note for note in notes(axes))


def test_communication_ends_a_step_and_its_hidden_part_lies_below_computing():
    device = [{**CELL, "step_seconds": 0.01, "compute_seconds": 0.008}]
    reading = {
        **CELL,
        "estimate": "profiler",
        "exposed_seconds": 0.001,
        "overlapped_seconds": 0.002,
    }
    figure = draw_step(schema.frame("device_time", device), schema.frame("readings", [reading]))
    bars = [bar for bar in figure.axes[0].patches if bar.get_width()]
    places = {
        bar.get_url().rsplit(maxsplit=3)[0].strip(): (bar.get_x(), bar.get_width()) for bar in bars
    }
    assert places["sending behind it"] == pytest.approx((60, 20))
    assert places["sending alone"] == pytest.approx((80, 10))
    assert "tuned · ddp, 64: 10 ms" in words(figure)


def test_the_phases_of_a_run_add_up_to_it():
    parts = [
        "launch",
        "imports",
        "join",
        "dataset",
        "recipe",
        "warmup",
        "measured",
        "other",
        "shutdown",
    ]
    row = {**CELL, "run_seconds": 45.0} | {
        f"{part}_seconds": i + 1.0 for i, part in enumerate(parts)
    }
    (axes,) = draw_startup(schema.frame("startup", [row])).axes
    assert sum(bar.get_width() for bar in axes.patches) == 45
    last = axes.patches[-1]
    assert last.get_x() + last.get_width() == pytest.approx(45)
