"""What a reader sees of times, efficiency, communication, accuracy, and techniques."""

import pandas as pd
import pytest

from examples import stored
from examples.drawn import error_bars, panel, points, words
from scaling.figures.scaling import (
    draw_bandwidth,
    draw_communication,
    draw_epoch_time,
    draw_learning,
    draw_remedies,
    draw_speedup,
    draw_step_classes,
)


@pytest.fixture(scope="module")
def study():
    return stored.study("h200x4")


def test_epoch_times_lie_at_their_batch_size_with_bars_from_minimum_to_maximum(study):
    axes = panel(draw_epoch_time(study.timing), "tuned")
    (cell,) = study.timing.query("gpus == 4 and batch_size == 512").itertuples()
    assert (512, round(cell.epoch_seconds, 6)) in points(axes)
    ends = {round(end, 6) for end in (cell.epoch_seconds_min, cell.epoch_seconds_max)}
    assert tuple(sorted(ends)) in error_bars(axes)
    assert set(axes.get_xticks()) == set(study.timing["batch_size"])


def test_classes_of_kernels_are_stacked_to_the_whole_step_with_their_least_time(study):
    cells = study.timing[study.timing["gpus"] == 1]
    products = {"kernel_class": "products", "seconds": 3e-3, "least_seconds": 1e-3}
    idle = {"kernel_class": "idle", "seconds": 1e-3, "least_seconds": 0.0}
    own = [cells.assign(**each) for each in (products, idle)]
    axes = panel(draw_step_classes(pd.concat(own)), "tuned · one GPU")
    bars = {(bar.get_y(), round(bar.get_height(), 6)) for bar in axes.patches}
    assert bars == {(0, 75), (0, 25), (75, 25), (75, 0)}


def test_an_efficiency_lies_at_its_batch_size_with_the_ideal(study):
    figure = draw_speedup(study.speedup)
    axes = panel(figure, "Efficiency on 4 GPUs")
    times = study.timing.set_index(["gpus", "batch_size"])["epoch_seconds"]
    assert (128, round(times[1, 128] / times[4, 128] / 4, 6)) in points(axes)
    assert list(axes.lines[0].get_ydata()) == [1, 1]
    best = panel(figure, "At the best batch size")
    assert (4, round(study.speedup["speedup"].max(), 6)) in points(best)
    assert list(best.lines[0].get_ydata()) == [1, 2, 4]


def test_exposed_communication_is_a_share_of_its_epoch_on_the_most_gpus(study):
    axes = panel(draw_communication(study.epoch_parts), "Exposed communication on 4 GPUs")
    (read,) = study.epoch_parts.query("gpus == 4 and batch_size == 128").itertuples()
    ends = (read.communication_seconds_low, read.communication_seconds_high)
    shares = [round(100 * each / read.epoch_seconds, 6) for each in ends]
    assert tuple(shares) in error_bars(axes)
    share = 100 * read.communication_seconds / read.epoch_seconds
    assert (128, round(share, 6)) in points(axes)


def test_the_link_alone_and_in_training_lie_at_their_bytes(study):
    axes, _ = draw_bandwidth(study.interconnect, study.bandwidth).axes
    alone = study.interconnect[study.interconnect["gpus"] == 2]
    assert list(axes.lines[0].get_xdata()) == sorted(alone["message_bytes"])
    reached = study.bandwidth.query("gpus == 2")["bandwidth_gb_per_s"].dropna().tolist()
    assert reached in [list(line.get_ydata()) for line in axes.lines]


def test_a_point_is_the_mean_over_the_seeds_after_the_last_epoch():
    cell = {"recipe": "plain", "strategy": "ddp", "gpus": 2, "batch_size": 64}
    rows = pd.DataFrame({"seed": [0, 0, 1, 1], "epoch": [1, 2, 1, 2]}).assign(**cell)
    rows["train_loss"], rows["test_accuracy"] = [2.0, 1.0, 2.4, 1.2], [None, 0.5, None, 0.6]
    figure = draw_learning(rows)
    assert (128, 1.1) in points(panel(figure, "Training loss, last epoch"))
    accuracy = panel(figure, "Test accuracy, %")
    assert (128, 55.0) in points(accuracy) and error_bars(accuracy) == {(50.0, 60.0)}


def test_the_first_technique_and_those_best_at_a_batch_are_named_the_others_grey(study):
    figure = draw_remedies(study.remedies)
    found = words(figure)
    assert {"none", "decay", "other techniques"} <= set(found) and "lars" not in found
    (sgd,) = study.remedies[study.remedies["reference"]].itertuples()
    (reference,) = [line for line in figure.axes[0].lines if line.get_linestyle() == "--"]
    assert list(reference.get_ydata()) == [100 * sgd.test_accuracy] * 2
