"""What a reader sees of training loss and accuracy over the epochs."""

import pandas as pd

from examples.drawn import panel, points
from scaling.figures.learning import draw_learning


def test_a_line_is_the_mean_over_the_seeds():
    rows = pd.DataFrame(
        {
            "recipe": "course",
            "strategy": "ddp",
            "gpus": 1,
            "batch_size": 128,
            "seed": [0, 0, 1, 1],
            "epoch": [1, 2, 1, 2],
            "train_loss": [2.0, 1.0, 2.4, 1.2],
            "train_accuracy": [0.2, 0.6, 0.3, 0.7],
            "test_accuracy": [None, 0.5, None, 0.6],
            "status": "ok",
        }
    )
    figure = draw_learning(rows)
    assert points(panel(figure, "course · ddp · training loss")) == {(1, 2.2), (2, 1.1)}
    accuracies = points(panel(figure, "course · ddp · accuracy, %"))
    assert accuracies == {(1, 25.0), (2, 65.0), (2, 55.0)}
