"""What a reader sees of times, efficiency, communication, accuracy, and techniques."""

import pandas as pd
import pytest

import report_render
from examples.drawn import panel, points, words
from examples.stored import EXPECTED, ROOT, study
from scaling.figures import FIGURES, scaling, style
from scaling.tables import schema

CAPTIONS = (ROOT / "report/captions/figures.rst").read_text(encoding="utf-8")
STUDY = study("h200x4")


def rounded(*values):
    return tuple(round(float(value), 6) for value in values)


def draw(name, folder, tables=EXPECTED / "cpu/tables"):
    """The figure of a stored study, or of what is in `tables`."""
    places = (schema.TABLES[table].path(tables, "cpu") for table in FIGURES[name].tables)
    made = [path for path in places if path.exists()]
    report_render.draw((name,), schema.read_study("cpu", made), folder)
    return (folder / f"{name}.svg").read_text()


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_has_a_caption_and_is_drawn_from_its_tables_or_empty(name, tmp_path):
    assert f"*{name}*: " in CAPTIONS
    drawn = draw(name, tmp_path)
    # No stored study has classes of kernels.
    assert ('id="axes_1"' in drawn) != (name == "step_classes")
    assert "dc:date" not in drawn and drawn == draw(name, tmp_path / "again")
    assert draw(name, tmp_path / "none", tmp_path) == style.EMPTY


def test_two_figures_share_no_clip_path(tmp_path):
    drawn = (draw(name, tmp_path).split('clipPath id="')[1:] for name in ("speedup", "learning"))
    ids, others = ({part[:12] for part in parts} for parts in drawn)
    assert ids and not ids & others


def test_epoch_times_lie_at_their_batch_size_with_their_interval():
    timing = study().timing
    axes = panel(scaling.draw_epoch_time(timing), "tuned")
    (cell,) = timing.query("gpus == 2 and batch_size == 512 and recipe == 'tuned'").itertuples()
    seconds = cell.epoch_seconds, cell.epoch_seconds_low, cell.epoch_seconds_high
    assert rounded(512, *seconds) in points(axes)
    assert set(axes.get_xticks()) == set(timing["batch_size"])


def test_classes_of_kernels_are_stacked_to_the_whole_step_with_their_least_time():
    cells = STUDY.timing[STUDY.timing["gpus"] == 1]
    products = {"kernel_class": "products", "seconds": 3e-3, "least_seconds": 1e-3}
    idle = {"kernel_class": "idle", "seconds": 1e-3, "least_seconds": 0.0}
    own = [cells.assign(**each) for each in (products, idle)]
    axes = panel(scaling.draw_step_classes(pd.concat(own)), "tuned · one GPU")
    bars = {(bar.get_y(), round(bar.get_height(), 6)) for bar in axes.patches}
    assert bars == {(0, 75), (0, 25), (75, 25), (75, 0)}


def test_an_efficiency_lies_at_its_batch_size_with_the_ideal():
    figure = scaling.draw_speedup(STUDY.speedup)
    axes, best = panel(figure, "Efficiency on 4 GPUs"), panel(figure, "At the best batch size")
    times = STUDY.timing.set_index(["gpus", "batch_size"])["epoch_seconds"]
    speedup = times[1, 128] / times[4, 128]
    assert rounded(128, speedup / 4) in {point[:2] for point in points(axes)}
    assert list(axes.lines[0].get_ydata()) == [1, 1]
    assert rounded(4, STUDY.speedup["speedup"].max()) in {point[:2] for point in points(best)}
    assert list(best.lines[0].get_ydata()) == [1, 2, 4]


def test_delay_is_a_share_of_its_epoch_on_the_most_gpus():
    table = study().communication
    axes = panel(scaling.draw_communication(table), "Delay by the exchange on 2 GPUs")
    (cell,) = table.query(
        "recipe == 'plain' and strategy == 'ddp' and batch_size == 128"
    ).itertuples()
    seconds = [cell.delay_seconds, cell.delay_seconds_low, cell.delay_seconds_high]
    assert rounded(128, *(100 * each / cell.epoch_seconds for each in seconds)) in points(axes)


def test_the_link_alone_and_in_training_lie_at_their_bytes():
    axes, _ = scaling.draw_bandwidth(STUDY.interconnect, STUDY.bandwidth, STUDY.costs).axes
    alone = STUDY.interconnect[STUDY.interconnect["gpus"] == 2]
    assert list(axes.lines[0].get_xdata()) == sorted(alone["message_bytes"])
    reached = STUDY.bandwidth.query("gpus == 2")["bandwidth_gb_per_s"].dropna().tolist()
    sizes = alone.loc[alone["kind"] == "tuned_bucket", "message_bytes"]
    (training,) = [line for line in axes.lines if line.get_linestyle() == "None"]
    assert set(training.get_ydata()) == set(reached)
    assert set(training.get_xdata()) == set(sizes)


def test_a_point_is_the_mean_over_the_seeds_after_the_last_epoch():
    cell = {"recipe": "plain", "strategy": "ddp", "gpus": 2, "batch_size": 64}
    rows = pd.DataFrame({"seed": [0, 0, 1, 1], "epoch": [1, 2, 1, 2]}).assign(**cell)
    rows["train_loss"], rows["test_accuracy"] = [2.0, 1.0, 2.4, 1.2], [None, 0.5, None, 0.6]
    figure = scaling.draw_learning(rows)
    assert points(panel(figure, "Training loss, last epoch")) == {(128, 1.1, 1, 1.2)}
    assert points(panel(figure, "Test accuracy, %")) == {(128, 55, 50, 60)}


def test_the_first_technique_and_those_best_at_a_batch_are_named_the_others_grey():
    figure = scaling.draw_remedies(STUDY.remedies)
    found = words(figure)
    assert {"none", "rate sweep", "other techniques"} <= set(found) and "lars" not in found
    (sgd,) = STUDY.remedies[STUDY.remedies["reference"]].itertuples()
    (reference,) = [line for line in figure.axes[0].lines if line.get_linestyle() == "--"]
    assert list(reference.get_ydata()) == [100 * sgd.test_accuracy] * 2
