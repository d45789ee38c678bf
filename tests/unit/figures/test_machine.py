"""What a reader sees of all-reduces and of the messages of a step."""

from examples import report_tables, synchronization_records
from examples.drawn import notes, titles
from scaling.figures.machine import draw_bandwidth, draw_collectives
from scaling.tables.experiments.synchronization import WAYS, collectives

TABLES = report_tables.make()


def test_the_link_alone_and_in_training_lie_at_their_bytes():
    axes, _ = draw_bandwidth(TABLES["interconnect"], TABLES["bandwidth"]).axes
    assert list(axes.lines[0].get_xdata()) == [4096, 1 << 20, 44_695_848, 1 << 30]
    assert any("· bandwidth.csv" in note for note in notes(axes))


def test_every_way_that_was_measured_has_a_panel_and_every_message_a_bar():
    table = collectives([synchronization_records.document(on_gpus=True)])
    figure = draw_collectives(table)
    assert [title.split(" · ")[0] for title in titles(figure)] == list(WAYS)
    # DDP: two at the start, one broadcast and two buckets.
    assert [len(axes.patches) for axes in figure.axes] == [5, 4, 6, 2, 6, 3, 7]
