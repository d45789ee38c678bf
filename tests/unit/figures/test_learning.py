"""What a reader sees of loss and accuracy over the global batch."""

import pandas as pd

from examples.drawn import error_bars, panel, points
from scaling.figures.learning import draw_learning


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
    assert (128, 1.1) in points(panel(figure, "Training loss after the last epoch"))
    accuracy = panel(figure, "Test accuracy, %")
    assert (128, 55.0) in points(accuracy) and error_bars(accuracy) == {(50.0, 60.0)}
