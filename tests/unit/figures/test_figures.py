"""What a reader sees in the figures."""

import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text

import plot_communication
import plot_epoch_time
import plot_learning
import plot_speedup
from examples import report_tables
from scaling.core.errors import UserError
from scaling.figures import style

TABLES = report_tables.make()
PLOTS = [
    (plot_epoch_time, "timing"),
    (plot_speedup, "speedup"),
    (plot_communication, "communication"),
    (plot_learning, "accuracy"),
]


@pytest.fixture(autouse=True)
def common_style():
    with style.style("test"):
        yield


def words(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.findobj(Text) if text.get_text()]


def panel(figure: Figure, title: str) -> Axes:
    (found,) = [axes for axes in figure.axes if axes.get_title(loc="left") == title]
    return found


def points(axes: Axes) -> set[tuple[float, float]]:
    """Every point of every line, at the tick on x it stands beside."""
    ticks = axes.get_xticks()
    return {
        (min(ticks, key=lambda tick: abs(tick - x)), round(float(y), 6))
        for line in axes.lines
        for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)
    }


def bars(axes: Axes) -> dict[float, list[tuple[float, float]]]:
    """(bottom, top) of the bars by the middle of their place on x."""
    found: dict[float, list[tuple[float, float]]] = {}
    for patch in axes.patches:
        middle = round(patch.get_x() + patch.get_width() / 2, 6)
        low = patch.get_y()
        found.setdefault(middle, []).append((round(low, 6), round(low + patch.get_height(), 6)))
    return found


@pytest.mark.parametrize(("script", "name"), PLOTS)
def test_the_same_table_gives_the_same_file(script, name, tmp_path):
    TABLES[name].to_csv(tmp_path / "table.csv", index=False)
    for copy in ("first.svg", "second.svg"):
        script.main([f"--{name}", str(tmp_path / "table.csv"), "--output", str(tmp_path / copy)])
    first = (tmp_path / "first.svg").read_bytes()
    assert first == (tmp_path / "second.svg").read_bytes()
    assert b"<svg" in first
    assert b"dc:date" not in first


@pytest.mark.parametrize(("script", "name"), PLOTS)
def test_a_table_that_does_not_exist_is_named(script, name, tmp_path):
    absent = str(tmp_path / "absent.csv")
    with pytest.raises(UserError, match=r"absent\.csv"):
        script.main([f"--{name}", absent, "--output", str(tmp_path / "figure.svg")])
    assert not (tmp_path / "figure.svg").exists()


def test_figures_of_two_names_share_no_clip_path(tmp_path):
    ids = []
    for name in ("one", "two"):
        with style.style(name):
            style.save(plot_epoch_time.draw(TABLES["timing"]), tmp_path / "figure.svg")
        svg = (tmp_path / "figure.svg").read_text()
        ids.append({part.partition('"')[0] for part in svg.split('clipPath id="')[1:]})
    assert ids[0]
    assert not ids[0] & ids[1]


def test_epoch_times_lie_at_their_batch_size():
    axes = panel(plot_epoch_time.draw(TABLES["timing"]), "course · ddp")
    assert (512, 3.0) in points(axes)
    assert (512, 1.49) in points(axes)
    assert (512, 0.9) in points(axes)


def test_error_bars_reach_from_minimum_to_maximum():
    axes = panel(plot_epoch_time.draw(TABLES["timing"]), "course · ddp")
    ends = {
        (round(float(low), 6), round(float(high), 6))
        for bars_of_line in axes.collections
        for (_, low), (_, high) in bars_of_line.get_segments()
    }
    assert (0.882, 0.918) in ends


def test_batch_sizes_are_labelled_in_plain_digits():
    figure = plot_epoch_time.draw(TABLES["timing"])
    figure.draw_without_rendering()
    labels = [label.get_text() for label in figure.axes[1].get_xticklabels()]
    assert labels == ["32", "128", "512", "2048", "16384"]


def test_a_cell_without_epoch_time_is_marked_with_its_status():
    shown = words(plot_epoch_time.draw(TABLES["timing"]))
    assert shown.count("× oom") == 3
    assert shown.count("× infeasible") == 3
    assert shown.count("× timeout") == 1


def test_a_diverged_cell_keeps_its_time_and_is_marked():
    figure = plot_epoch_time.draw(TABLES["timing"])
    assert (16384, 1.9) in points(panel(figure, "course · ddp"))
    assert words(figure).count("× diverged") == 1


def test_a_study_without_trouble_has_no_strip_of_marks():
    fine = TABLES["timing"][TABLES["timing"]["batch_size"] == 128]
    figure = plot_epoch_time.draw(fine)
    assert len(figure.axes) == 3
    assert not [text for text in words(figure) if "×" in text]


def test_a_missing_cell_is_marked_as_missing():
    assert "× missing" in words(plot_epoch_time.draw(report_tables.make(missing=True)["timing"]))


def test_the_ideal_speedup_is_the_number_of_gpus_and_the_ideal_efficiency_1():
    figure = plot_speedup.draw(TABLES["speedup"])
    assert "ideal" in words(figure)
    assert list(panel(figure, "course · dp: speedup").lines[0].get_ydata()) == [1, 2, 4]
    assert list(panel(figure, "course · dp: efficiency").lines[0].get_ydata()) == [1, 1, 1]


@pytest.mark.parametrize(("quantity", "value"), [("speedup", 0.5), ("efficiency", 0.125)])
def test_a_speedup_and_an_efficiency_lie_at_their_number_of_gpus(quantity, value):
    axes = panel(plot_speedup.draw(TABLES["speedup"]), f"course · dp: {quantity}")
    # 9.8 / 19.6, and that over 4, each with times of ± 2 %
    assert (4, value) in points(axes)
    ends = {end for bar in axes.collections for _, end in bar.get_paths()[-1].vertices}
    assert any(end == pytest.approx(value * 0.98 / 1.02) for end in ends)
    assert any(end == pytest.approx(value * 1.02 / 0.98) for end in ends)
    low, high = axes.get_ylim()
    assert low < min(ends) and max(ends) < high


def test_a_cell_whose_baseline_failed_says_so():
    shown = words(plot_speedup.draw(TABLES["speedup"]))
    assert shown.count("× no 1-GPU time") == 4
    assert shown.count("× timeout") == 2


def test_one_gpu_alone_has_no_speedup_to_draw():
    alone = TABLES["speedup"][TABLES["speedup"]["gpus"] == 1]
    assert any("more than one number of GPUs" in text for text in words(plot_speedup.draw(alone)))


def test_compute_and_communication_stack_up_to_the_total():
    figure = plot_communication.draw(TABLES["communication"])
    # The first bar of course/ddp, batch 32, 2 GPUs: 9.8 / 2 = 4.9, and 5.6 in all.
    axes = panel(figure, "course · ddp\nsubtraction")
    assert bars(axes)[-0.21] == [(0, 4.9), (4.9, 5.6)]


def test_every_bar_is_labelled_with_its_number_of_gpus():
    pairs = TABLES["communication"][TABLES["communication"]["gpus"] == 2]
    figure = plot_communication.draw(pairs)
    figure.draw_without_rendering()
    axes = panel(figure, "course · ddp\nsubtraction")
    small = [label.get_text() for label in axes.get_xticklabels(minor=True)]
    assert small == ["2"] * 5
    large = [label.get_text() for label in axes.get_xticklabels()]
    assert large == ["b = 32", "b = 128", "b = 512", "b = 2048", "b = 16384"]


def test_negative_communication_hangs_below_zero():
    figure = plot_communication.draw(TABLES["communication"])
    # course/ddp, batch 512, 2 GPUs: 1.49 - 3.0 / 2 = -0.01.
    stack = bars(panel(figure, "course · ddp\nsubtraction"))[1.79]
    assert stack == [(0, 1.5), (0, -0.01)]
    assert "negative communication" in words(figure)


def test_a_cell_without_bars_says_why():
    figure = plot_communication.draw(TABLES["communication"])
    axes = panel(figure, "course · dp\nsubtraction")
    assert not {3.79, 4.21} & set(bars(axes))
    assert {text.get_text() for text in axes.texts} == {"× oom", "× infeasible"}


def test_a_cell_without_bars_takes_no_room_above_those_there_are():
    shares = TABLES["communication"]
    shares = shares[(shares["recipe"] == "course") & (shares["strategy"] == "dp")].copy()
    missing = shares["batch_size"] == 32
    shares.loc[missing, ["total_seconds", "communication_seconds"]] = None
    shares.loc[missing, ["status", "compute_seconds"]] = "missing", 100.0
    low, high = plot_communication.draw(shares).axes[0].get_ylim()
    assert low <= 0 < high < 10


def test_an_epoch_without_baseline_is_grey_and_undivided():
    axes = panel(plot_communication.draw(TABLES["communication"]), "course · ddp\nsubtraction")
    # Batch 2048 on 2 GPUs took 1.6 s; the single GPU's run timed out.
    assert bars(axes)[2.79] == [(0, 1.6)]
    assert [text.get_text() for text in axes.texts].count("× no 1-GPU time") == 2


def test_a_study_on_one_gpu_has_no_communication_to_draw():
    shown = words(plot_communication.draw(TABLES["communication"][:0]))
    assert shown == ["The study has no cell on more than one GPU."]


def test_the_loss_is_the_mean_over_the_seeds():
    rows = pd.DataFrame(
        {
            "study": "s",
            "recipe": "course",
            "strategy": "ddp",
            "gpus": 1,
            "batch_size": 128,
            "seed": [0, 0, 1, 1],
            "epoch": [1, 2, 1, 2],
            "train_loss": [2.0, 1.0, 2.4, 1.2],
            "train_accuracy": [0.2, 0.6, 0.3, 0.7],
            "test_loss": [None, 1.1, None, 1.1],
            "test_accuracy": [None, 0.5, None, 0.6],
            "status": "ok",
        }
    )
    figure = plot_learning.draw(rows)
    assert points(panel(figure, "course · ddp · training loss")) == {(1, 2.2), (2, 1.1)}
    accuracies = points(panel(figure, "course · ddp · accuracy, %"))
    assert accuracies == {(1, 25.0), (2, 65.0), (2, 55.0)}


def test_runs_without_a_learning_curve_are_listed_with_their_status():
    shown = "\n".join(words(plot_learning.draw(TABLES["accuracy"])))
    assert "× diverged: 2 × 16384 (1 of 3 seeds)" in shown
    assert "× oom: 1 × 16384, 2 × 16384" in shown
    assert "× timeout: 1 × 2048" in shown


def test_only_the_runs_of_the_chosen_study_are_drawn(tmp_path):
    own = TABLES["accuracy"][TABLES["accuracy"]["batch_size"] == 128]
    other = own.assign(study="other", recipe="elsewhere")
    table, output = tmp_path / "accuracy.csv", tmp_path / "learning.svg"
    pd.concat([own, other]).to_csv(table, index=False)
    arguments = ["--accuracy", str(table), "--output", str(output)]
    plot_learning.main([*arguments, "--study", report_tables.STUDY])
    assert "elsewhere" not in output.read_text()
    plot_learning.main(arguments)
    assert "elsewhere" in output.read_text()


def test_a_study_in_which_nothing_ran_says_so():
    nothing = TABLES["accuracy"][TABLES["accuracy"]["epoch"].isna()]
    assert words(plot_learning.draw(nothing)) == ["No run of the study completed an epoch."]
