"""Studies side by side: by one estimate for each strategy, and what a reader sees of them."""

import pandas as pd
import pytest

from examples.drawn import titles, words
from grader.tables_comparison import by_one_estimate, draw_comparison
from scaling.figures import style

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
    with style.style("comparison"):
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


@pytest.mark.parametrize(
    ("without", "estimate"),
    [
        # A negative one has no other in its place.
        ((0.1, -0.2), "subtraction_without_loading"),
        ((0.1, None), "subtraction"),
        ((None, None), "subtraction"),
    ],
)
def test_communication_of_all_cells_is_by_one_estimate(without, estimate):
    seconds = {
        "subtraction": (0.3, 0.4),
        "subtraction_without_loading": without,
        "profiler": (1, 1),
    }
    table = pd.DataFrame(
        {"recipe": "plain", "strategy": "ddp", "estimate": name, "communication_seconds": own}
        for name, values in seconds.items()
        for own in values
    )
    found = by_one_estimate(table)
    assert set(found["estimate"]) == {estimate}
    assert found["communication_seconds"].tolist() == list(seconds[estimate])
