"""Figures of times, speedups, bandwidths, accuracy, techniques and int8."""

import re

import pandas as pd
import pytest
from scipy import stats

from examples.page import panel, points, words
from examples.stored import ROOT, study
from scaling.config.scheme import STAGES
from scaling.figures import FIGURES, scaling, style
from scaling.tables import ranks_int8
from scaling.tables.schema import StudyTables

STUDY, FLAGSHIP = study("h200x4"), study()
WITHOUT = [
    (study("cpu"), {"speedup", "communication", "bandwidth"}),
    (study("h200x2-models"), {"learning", "remedies", "quantization_histograms"}),
    (StudyTables("none", {}), FIGURES),
]
"""Studies, and the figures for which they have no data. On a CPU, processes share cores."""


def rounded(*values):
    return tuple(round(float(value), 6) for value in values)


@pytest.mark.parametrize("name", FIGURES)
def test_figure_has_width_and_colours_of_the_page(name, tmp_path):
    css = (ROOT / "report/style.css").read_text(encoding="utf-8")
    for number, (tables, empty) in enumerate(WITHOUT):
        paths = [tmp_path / f"{number}{again}/{name}.svg" for again in "ab"]
        for path in paths:
            style.save(getattr(scaling, f"draw_{name}"), tables, path)
        drawn, again = (path.read_text() for path in paths)
        assert drawn == again and (drawn == style.EMPTY) == (name in empty)
        if name in empty:
            continue
        assert 'width="358"' in drawn and 'id="axes' not in drawn and "dc:date" not in drawn
        assert min(float(size) for size in re.findall(r"font-size: ([\d.]+)px", drawn)) >= 11
        variables = set(re.findall(r"var\((--[\w-]+), #", drawn))
        assert variables and all(f"{one}: light-dark(" in css for one in variables)
        assert not re.findall(r"(?<!, )#[0-9a-f]{6}", drawn)


def test_epoch_time_lies_at_its_batch_size_with_interval():
    axes = panel(scaling.draw_epoch_time(FLAGSHIP), "Seconds per epoch on 1 GPU")
    own = FLAGSHIP.timing.query("gpus == 1 and batch_size == 512 and recipe == 'plain'")
    (cell,) = own.itertuples()
    for name in ("epoch_seconds", "training_seconds"):
        ends = (getattr(cell, f"{name}{end}") for end in ("", "_low", "_high"))
        assert rounded(512, *ends) in points(axes)
    assert set(axes.get_xticks()) == set(FLAGSHIP.timing.query("gpus == 1")["batch_size"])
    assert {"plain", "plain,\ntraining", "tuned"} <= set(words(axes.figure))


def test_speedup_lies_at_its_batch_size_with_the_ideal():
    figure = scaling.draw_speedup(STUDY)
    axes = panel(figure, "Speedup of training time, 4 GPUs")
    times = STUDY.timing.set_index(["gpus", "batch_size"])["training_seconds"]
    assert rounded(128, times[1, 128] / times[4, 128]) in {point[:2] for point in points(axes)}
    assert {4, 1} <= {line.get_ydata()[0] for line in axes.lines}


def test_accuracy_is_the_mean_over_seeds_after_the_last_epoch():
    cell = {"recipe": "plain", "strategy": "ddp", "gpus": 2, "status": "ok", "epoch": 2}
    rows = pd.DataFrame({**cell, "batch_size": [64] * 4 + [128] * 2, "train_loss": 1.0})
    rows["seed"] = [0, 1, 2, 2, 0, 1]  # seed 2 has two repeats
    rows["test_accuracy"] = rows["train_accuracy"] = [0.5, 0.6, 0.65, 0.75, 0.2, 0.4]
    cells = rows.drop_duplicates("batch_size")
    figure = scaling.draw_learning(StudyTables("own", {"accuracy": rows, "timing": cells}))
    # Student's t over three seeds; two have no interval.
    off = stats.t.ppf(0.975, 2) * 10 / 3**0.5
    bars = {rounded(128, 60, 60 - off, 60 + off), (256, 30, 30, 30)}
    assert points(panel(figure, "Test accuracy, %")) == bars


def test_first_and_best_techniques_are_named_others_grey():
    figure, lars = scaling.draw_remedies(STUDY), STUDY.remedies.query("remedy == 'lars'")
    assert {"none", "lars", "rate sweep"} <= set(words(figure))
    assert "grey" not in figure.axes[0].get_xlabel()
    # A colour each for eight, the best by validation, although equal in test accuracy.
    more = [lars.assign(remedy=f"more_{n}", validation_accuracy=n / 10) for n in range(9)]
    rows = pd.concat([STUDY.remedies.assign(validation_accuracy=0.01), *more], ignore_index=True)
    other = scaling.draw_remedies(StudyTables("own", STUDY.found | {"remedies": rows}))
    assert {"none", *(f"more {n}" for n in range(2, 9))} <= set(words(other))
    assert not {"rate sweep", "lars", "more 1"} & set(words(other))
    assert "grey: other techniques" in other.axes[0].get_xlabel()


EDGES = [(level - 0.5) / 2 for level in range(-5, 5)]
HISTOGRAM = {"bin_edges": EDGES, "counts": [1, 0, 2, 0, 1, 10, 3, 2, 1]}
"""Histogram of levels from -5 to 3, at 2 levels per unit."""


def test_layer_is_drawn_between_limits_by_four_levels():
    entries = [
        {"layer": "fc", "quantity": quantity, "scale": 2.0, "int8": HISTOGRAM, "float": HISTOGRAM}
        for quantity in ("weights", "before_relu")
    ]
    record = {"seed": 3, "variant": STAGES[-1], "histograms": entries}
    table = ranks_int8.quantization_histograms([{"seed": 0}, record, {**record, "seed": 4}])
    tables = StudyTables("own", {"quantization_histograms": table})
    figure = scaling.draw_quantization_histograms(tables)
    panels = [panel(figure, f"{name}\n1 level = 0.5") for name in ("weights", "before ReLU")]
    assert "fc" in words(figure) and len(figure.axes) == 2
    drawn = [sorted(line.get_xdata()[0] * 2 for line in axes.lines) for axes in panels]
    assert drawn == [[-127.5, 127.5], [-128.5, 127.5]]
    for axes in panels:
        found = axes.patches[0].get_data()
        # The bins begin at levels -8, -4, 0.
        assert found.edges.tolist() == [-4.25, -2.25, -0.25, 1.75]
        assert found.values.round(6).tolist() == [0.05, 0.15, 0.8]


def test_plots_leave_out_dp_and_batches_of_strong_scaling():
    draws = scaling.draw_bandwidth, scaling.draw_communication, scaling.draw_learning
    bandwidth, sent, accuracy = (words(draw(FLAGSHIP)) for draw in draws)
    assert "plain/ddp" in bandwidth and "plain/dp" not in bandwidth
    assert "32" in sent and "64" not in sent and {"plain", "plain/dp"} <= set(accuracy)
