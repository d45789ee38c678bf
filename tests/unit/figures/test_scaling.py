"""What a reader sees of epoch times, efficiency, and communication."""

import pytest

from examples import report_tables
from examples.drawn import error_bars, notes, panel, points
from scaling.figures.scaling import (
    draw_bandwidth,
    draw_communication,
    draw_epoch_time,
    draw_speedup,
)

TABLES = report_tables.make()


def test_epoch_times_lie_at_their_batch_size_with_bars_from_minimum_to_maximum():
    axes = panel(draw_epoch_time(TABLES["timing"]), "plain")
    assert {(512, 3.0), (512, 1.49), (512, 0.9)} <= points(axes)
    assert (0.882, 0.918) in error_bars(axes)
    assert list(axes.get_xticks()) == [32, 128, 512, 2048, 16384]
    assert "plain/ddp, 4 GPUs, b\u00a0=\u00a0512: 0.900 (0.882–0.918) · timing.csv" in notes(axes)


def test_an_efficiency_lies_at_its_batch_size_beside_the_ideal():
    figure = draw_speedup(TABLES["speedup"])
    axes = panel(figure, "Efficiency on 4 GPUs")
    # DataParallel: 9.8 / 19.6 / 4, each with times of ± 2 %
    assert (32, 0.125) in points(axes)
    ends = {end for bar in error_bars(axes) for end in bar}
    assert any(end == pytest.approx(0.125 * 0.98 / 1.02, rel=1e-4) for end in ends)
    assert list(axes.lines[0].get_ydata()) == [1, 1]
    # The batch that scales best with fast/ddp: 1.32 / 0.32.
    best = panel(figure, "At the best batch size")
    assert (4, 4.125) in points(best) and list(best.lines[0].get_ydata()) == [1, 2, 4]


def test_exposed_communication_is_a_share_of_its_epoch_on_the_most_gpus():
    axes = panel(draw_communication(TABLES["epoch_parts"]), "Exposed communication on 4 GPUs")
    # Batch 32 on 4 GPUs, without loading: 2.9 − 9.4 / 4 = 0.55 s, of 3.1 s.
    assert (32, round(100 * 0.55 / 3.1, 6)) in points(axes)


def test_the_link_alone_and_in_training_lie_at_their_bytes():
    axes, _ = draw_bandwidth(TABLES["interconnect"], TABLES["bandwidth"]).axes
    assert list(axes.lines[0].get_xdata()) == [4096, 1 << 20, 44_695_848, 1 << 30]
    assert any("· bandwidth.csv" in note for note in notes(axes))
