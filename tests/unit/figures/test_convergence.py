"""What a reader sees of techniques: those that matter have a name."""

import pandas as pd

from examples.drawn import words
from scaling.figures.convergence import draw_remedies


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
