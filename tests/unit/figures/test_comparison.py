"""What a reader sees of studies side by side."""

import pandas as pd

from examples.drawn import titles, words
from scaling.figures.comparison import draw_comparison

SECONDS = {1: 18.0, 2: 9.5, 4: 4.9}
STUDY = pd.DataFrame(
    [
        {"study": "lab", "recipe": "resnet18", "strategy": "ddp", "gpus": gpus}
        | {"batch_size": batch, "samples": 50_000, "epoch_seconds": seconds / (1 + batch / 1e6)}
        | {"speedup": 18 / seconds, "efficiency": 18 / seconds / gpus, "bandwidth_gb_per_s": 2.0}
        for gpus, seconds in SECONDS.items()
        for batch in (128, 512, 65_536)
    ]
)


def test_the_figure_has_a_row_for_each_metric_and_a_line_for_each_study():
    other = STUDY.assign(study="other", epoch_seconds=STUDY["epoch_seconds"] * 2)
    figure = draw_comparison(pd.concat([STUDY, other]))
    rows = ["seconds per epoch", "speedup", "efficiency", "GB/s"]
    assert titles(figure) == [f"{gpus} GPUs · {row}" for row in rows for gpus in (2, 4)]
    assert {"lab · resnet18 · ddp", "other · resnet18 · ddp"} <= set(words(figure))
    drawn = [line.get_ydata() for line in figure.axes[1].lines if line.get_marker() in "os"]
    (_, first), (_, second) = drawn
    assert second == 2 * first
    # The batch that no training set has is left out, and each row has one scale.
    assert figure.axes[0].get_xlim()[1] < 65_536
    assert figure.axes[0].get_ylim() == figure.axes[1].get_ylim()
