"""What a reader sees of the machine's link, of a step and of a run."""

import pytest

from examples import report_tables, synchronization_records
from examples.drawn import notes, titles, words
from scaling.figures.machine import draw_bandwidth, draw_collectives, draw_startup, draw_step
from scaling.tables import schema
from scaling.tables.experiments.synchronization import WAYS, collectives

TABLES = report_tables.make()
CELL = {"recipe": "tuned", "strategy": "ddp", "gpus": 2, "batch_size": 64}


def test_the_link_alone_and_in_training_lie_at_their_bytes():
    axes, _ = draw_bandwidth(TABLES["interconnect"], TABLES["bandwidth"]).axes
    assert list(axes.lines[0].get_xdata()) == [4096, 1 << 20, 44_695_848, 1 << 30]
    assert any("· bandwidth.csv" in note for note in notes(axes))


def test_communication_ends_a_step_and_its_hidden_part_lies_below_computing():
    device = CELL | {"step_seconds": 0.01, "compute_seconds": 0.008}
    reading = CELL | {"exposed_seconds": 0.001, "overlapped_seconds": 0.002}
    reading["estimate"] = "profiler"
    figure = draw_step(schema.frame("device_time", [device]), schema.frame("readings", [reading]))
    bars = [(bar.get_x(), bar.get_width()) for bar in figure.axes[0].patches if bar.get_width()]
    assert bars == [pytest.approx(bar) for bar in ((0, 80), (0, 60), (60, 20), (80, 10))]
    assert "tuned · ddp, 64: 10 ms" in words(figure)


def test_the_phases_of_a_run_add_up_to_it():
    row = CELL | {"run_seconds": 45, "imports_seconds": 5, "warmup_seconds": 9}
    (axes,) = draw_startup(schema.frame("startup", [row])).axes
    assert sum(bar.get_width() for bar in axes.patches) == 45


def test_every_way_that_was_measured_has_a_panel_and_every_message_a_bar():
    table = collectives([synchronization_records.document(on_gpus=True)])
    figure = draw_collectives(table)
    assert [title.split(" · ")[0] for title in titles(figure)] == list(WAYS)
    # DDP: two at the start, one broadcast and two buckets.
    assert [len(axes.patches) for axes in figure.axes] == [5, 4, 6, 2, 6, 3, 7]
