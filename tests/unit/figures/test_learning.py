"""What a reader sees of loss and accuracy over the global batch, and of techniques."""

import pandas as pd

from examples.drawn import error_bars, panel, points, words
from scaling.figures.learning import draw_learning, draw_remedies


def test_a_point_is_the_mean_over_the_seeds_after_the_last_epoch():
    rows = pd.DataFrame(
        {
            "recipe": "plain",
            "strategy": "ddp",
            "gpus": 2,
            "batch_size": 64,
            "seed": [0, 0, 1, 1],
            "epoch": [1, 2, 1, 2],
            "train_loss": [2.0, 1.0, 2.4, 1.2],
            "test_accuracy": [None, 0.5, None, 0.6],
        }
    )
    figure = draw_learning(rows)
    assert (128, 1.1) in points(panel(figure, "Training loss, last epoch"))
    accuracy = panel(figure, "Test accuracy, %")
    assert (128, 55.0) in points(accuracy) and error_bars(accuracy) == {(50.0, 60.0)}


def test_the_first_technique_and_those_best_at_a_batch_are_named_the_others_grey():
    accuracies = {"none": (0.7, 0.5), "warm_up": (0.6, 0.4), "lars": (0.65, 0.6)}
    rows = [
        {"remedy": name, "global_batch": batch, "reference": name == "none" and batch == 128}
        | {"diverged_seeds": 0, "test_accuracy": value}
        | {"test_accuracy_min": value - 0.01, "test_accuracy_max": value + 0.01}
        for name, values in accuracies.items()
        for batch, value in zip((128, 512), values, strict=True)
    ]
    figure = draw_remedies(pd.DataFrame(rows))
    found = words(figure)
    assert {"none", "lars", "other techniques"} <= set(found) and "warm up" not in found
    reference = [line for line in figure.axes[0].lines if line.get_linestyle() == "--"]
    assert list(reference[0].get_ydata()) == [70, 70]
