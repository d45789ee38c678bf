"""The page of published studies: what follows from their times, side by side."""

import pytest

from examples.drawn import titles, words
from examples.grader.published_study import of_repository
from grader.published import comparison, draw
from scaling.figures import style


def test_studies_are_compared_by_one_definition_and_drawn_in_one_scale():
    studies = [of_repository(name) for name in ("lab5-a40-ddp", "notebook-dp")]
    table = comparison(studies)
    cells = table.set_index(["study", "gpus", "batch_size"])
    a40 = cells.loc["lab5-a40-ddp", 4, 32]
    # 23.550 / 9.060; 1.5 K · 391 iterations of 44,695,848 B in 8.811 - 22.782 / 4 = 3.1155 s
    assert a40["speedup"] == pytest.approx(2.599338)
    assert a40["efficiency"] == pytest.approx(2.599338 / 4)
    assert a40["bandwidth_gb_per_s"] == pytest.approx(8.414096)
    # 4.861 - 19.448 / 4 is -0.001 s, and a batch larger than the training set cannot be drawn.
    assert cells["bandwidth_gb_per_s"].isna()["lab5-a40-ddp", 4, 512]
    assert (table["gpus"] * table["batch_size"]).max() <= 50_000
    with style.style("comparison"):
        figure = draw(table)
    rows = ["seconds per epoch", "speedup", "efficiency", "GB/s"]
    assert titles(figure) == [f"{gpus} GPUs · {row}" for row in rows for gpus in (2, 4)]
    assert {"lab5-a40-ddp · ddp", "notebook-dp · dp"} <= set(words(figure))
    assert figure.axes[0].get_ylim() == figure.axes[1].get_ylim()
    assert draw(comparison([])) is None
