"""What a reader sees of loss and accuracy over the global batch."""

import pandas as pd

from examples.drawn import error_bars, panel, points
from scaling.figures.learning import draw_learning, draw_pareto


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


def test_an_accuracy_stands_over_the_seconds_and_the_joules_of_its_epochs():
    cell = {"recipe": "plain", "strategy": "ddp", "gpus": 2, "batch_size": 64}
    timing = pd.DataFrame([{**cell, "status": "ok", "epoch_seconds": 2.0}])
    accuracy = pd.DataFrame([{**cell, "seed": 0, "epoch": 2, "test_accuracy": 0.5}])
    run = {**cell, "seed": 0, "test_accuracy": 0.9, "training_seconds": 30.0, "joules": 5000.0}
    costs = pd.DataFrame([{**cell, "watt_hours_per_epoch": 1 / 3.6}])
    figure = draw_pareto(accuracy, timing, pd.DataFrame([run]), costs)
    assert points(panel(figure, "Test accuracy over seconds")) == {(4.0, 50.0), (30.0, 90.0)}
    assert points(panel(figure, "Test accuracy over joules")) == {(2000.0, 50.0), (5000.0, 90.0)}
