"""What a reader sees of epoch times, speedups and the parts of an epoch."""

import pytest

from examples import report_tables
from examples.drawn import bars, error_bars, panel, points, words
from scaling.figures.scaling import draw_communication, draw_epoch_time, draw_speedup

TABLES = report_tables.make()


def test_epoch_times_lie_at_their_batch_size_with_bars_from_minimum_to_maximum():
    figure = draw_epoch_time(TABLES["timing"])
    axes = panel(figure, "course · ddp")
    assert {(512, 3.0), (512, 1.49), (512, 0.9)} <= points(axes)
    assert (0.882, 0.918) in error_bars(axes)
    figure.draw_without_rendering()
    labels = [label.get_text() for label in figure.axes[1].get_xticklabels()]
    assert labels == ["32", "128", "512", "2048", "16384"]


def test_a_cell_without_epoch_time_is_marked_with_its_status():
    shown = words(draw_epoch_time(TABLES["timing"]))
    marks = {name: shown.count(f"× {name}") for name in ("oom", "infeasible", "timeout")}
    assert marks == {"oom": 3, "infeasible": 3, "timeout": 1}
    assert "× missing" in words(draw_epoch_time(report_tables.make(missing=True)["timing"]))


def test_a_diverged_cell_keeps_its_time_and_is_marked():
    figure = draw_epoch_time(TABLES["timing"])
    assert (16384, 1.9) in points(panel(figure, "course · ddp"))
    assert words(figure).count("× diverged") == 1
    assert "timed, but not ok" in words(figure)


def test_a_study_without_trouble_has_no_strip_of_marks():
    figure = draw_epoch_time(TABLES["timing"][TABLES["timing"]["batch_size"] == 128])
    assert len(figure.axes) == 3
    assert not [text for text in words(figure) if "×" in text]


def test_the_ideal_speedup_is_the_number_of_gpus_and_the_ideal_efficiency_1():
    figure = draw_speedup(TABLES["speedup"])
    assert "ideal" in words(figure)
    assert list(panel(figure, "course · dp: speedup").lines[0].get_ydata()) == [1, 2, 4]
    assert list(panel(figure, "course · dp: efficiency").lines[0].get_ydata()) == [1, 1, 1]


@pytest.mark.parametrize(("quantity", "value"), [("speedup", 0.5), ("efficiency", 0.125)])
def test_a_speedup_and_an_efficiency_lie_at_their_number_of_gpus(quantity, value):
    axes = panel(draw_speedup(TABLES["speedup"]), f"course · dp: {quantity}")
    # 9.8 / 19.6, and that over 4, each with times of ± 2 %
    assert (4, value) in points(axes)
    ends = {end for bar in error_bars(axes) for end in bar}
    assert any(end == pytest.approx(value * 0.98 / 1.02, rel=1e-4) for end in ends)
    assert any(end == pytest.approx(value * 1.02 / 0.98, rel=1e-4) for end in ends)
    low, high = axes.get_ylim()
    assert low < min(ends) and max(ends) < high


def test_a_cell_whose_baseline_failed_says_so():
    shown = words(draw_speedup(TABLES["speedup"]))
    assert shown.count("× no 1-GPU time") == 4
    assert shown.count("× timeout") == 2


def test_one_gpu_alone_has_neither_speedup_nor_communication_to_draw():
    alone = TABLES["speedup"][TABLES["speedup"]["gpus"] == 1]
    assert "more than one number of GPUs" in words(draw_speedup(alone))[0]
    shown = words(draw_communication(TABLES["communication"][:0]))
    assert shown == ["The study has no cell on more than one GPU."]


def test_compute_and_communication_stack_up_to_the_total_and_a_negative_one_hangs_below_zero():
    figure = draw_communication(TABLES["communication"])
    stacks = bars(panel(figure, "course · ddp\nsubtraction"))
    # The first bar, batch 32 on 2 GPUs: 9.8 / 2 = 4.9, and 5.6 in all.
    assert stacks[-0.21] == [(0, 4.9), (4.9, 5.6)]
    # Batch 512 on 2 GPUs: 1.49 - 3.0 / 2 = -0.01.
    assert stacks[1.79] == [(0, 1.5), (0, -0.01)]
    assert "negative communication" in words(figure)


def test_every_bar_is_labelled_with_its_number_of_gpus():
    pairs = TABLES["communication"][TABLES["communication"]["gpus"] == 2]
    figure = draw_communication(pairs)
    figure.draw_without_rendering()
    axes = panel(figure, "course · ddp\nsubtraction")
    small = [label.get_text() for label in axes.get_xticklabels(minor=True)]
    assert small == ["2"] * 5
    large = [label.get_text() for label in axes.get_xticklabels()]
    assert large == ["b = 32", "b = 128", "b = 512", "b = 2048", "b = 16384"]


def test_a_cell_without_bars_says_why():
    axes = panel(draw_communication(TABLES["communication"]), "course · dp\nsubtraction")
    assert not {3.79, 4.21} & set(bars(axes))
    assert {text.get_text() for text in axes.texts} == {"× oom", "× infeasible"}


def test_a_cell_without_bars_takes_no_room_above_those_there_are():
    shares = TABLES["communication"]
    shares = shares[(shares["recipe"] == "course") & (shares["strategy"] == "dp")].copy()
    missing = shares["batch_size"] == 32
    shares.loc[missing, ["total_seconds", "communication_seconds"]] = None
    shares.loc[missing, ["status", "compute_seconds"]] = "missing", 100.0
    low, high = draw_communication(shares).axes[0].get_ylim()
    assert low <= 0 < high < 10


def test_an_epoch_without_baseline_is_grey_and_undivided():
    axes = panel(draw_communication(TABLES["communication"]), "course · ddp\nsubtraction")
    # Batch 2048 on 2 GPUs took 1.6 s; the single GPU's run timed out.
    assert bars(axes)[2.79] == [(0, 1.6)]
    assert [text.get_text() for text in axes.texts].count("× no 1-GPU time") == 2
