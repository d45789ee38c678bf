"""What a reader sees of the messages of a training step."""

from examples import synchronization_records
from examples.drawn import titles
from scaling.figures.synchronization import draw_collectives
from scaling.tables.experiments.synchronization import WAYS, collectives


def test_every_way_that_was_measured_has_a_panel_and_every_message_a_bar():
    table = collectives([synchronization_records.document(on_gpus=True)])
    figure = draw_collectives(table)
    assert [title.split(" · ")[0] for title in titles(figure)] == list(WAYS)
    # DDP: two at the start, one broadcast and two buckets.
    assert [len(axes.patches) for axes in figure.axes] == [5, 4, 6, 2, 6, 3, 7]
