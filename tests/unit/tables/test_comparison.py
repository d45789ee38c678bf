"""Two studies side by side, cell by cell."""

import pandas as pd
import pytest

from examples.records import timing_row, timing_table
from scaling.tables import comparison

A = timing_table(
    timing_row(1, 128, 8.0, spread=0.4),
    timing_row(1, 128, 8.0, spread=0.4, strategy="dp"),
    timing_row(2, 128, 5.0, spread=0.25),
    timing_row(2, 512, 2.0, spread=0.25),
    timing_row(2, 2048, 1.0, count=1),
    timing_row(2, 8192, 1.0),
    timing_row(4, 32, status="oom"),
)
B = timing_table(
    timing_row(1, 128, 10.0, spread=0.5, strategy="dp"),
    timing_row(2, 128, 4.0, spread=0.2),
    timing_row(2, 512, 2.5, spread=0.25),
    timing_row(2, 2048, 9.0),
    timing_row(2, 8192, status="oom"),
    timing_row(4, 128, 3.0),
)


def test_cells_are_matched_with_the_ratio_of_their_seconds_and_its_range_worst_first():
    found = comparison.match(A, B)
    cells = list(found[["gpus", "batch_size"]].itertuples(index=False, name=None))
    assert cells[:4] == [(2, 2048), (1, 128), (2, 512), (2, 128)]
    assert list(found["verdict"]) == [
        *("not repeated", "slower", "within noise", "faster", "only in A", "only in B")
    ]
    # 8 / 10 on one GPU, whatever the strategy; 7.6 / 10.5 and 8.4 / 9.5
    ratio = list(found.loc[1, ["ratio", "ratio_min", "ratio_max"]])
    assert ratio == pytest.approx([0.8, 7.6 / 10.5, 8.4 / 9.5])
    # 2.25 s is in both ranges; 5 / 4, 4.75 / 4.2
    assert found.iloc[3]["ratio"] == 1.25 and found.iloc[3]["ratio_min"] == 4.75 / 4.2
    assert pd.isna(found.iloc[0]["ratio_max"]) and found.iloc[0]["ratio"] == 1 / 9
    assert found["b_status"][4] == "oom" and found["a_status"][5] == "not in the grid"


def test_below_the_pass_mark_are_cells_with_all_of_their_range_there_and_those_that_failed():
    found, highest = comparison.match(A, B), 8.4 / 9.5
    assert set(comparison.too_slow(found, highest)["batch_size"]) == {8192}
    assert set(comparison.too_slow(found, highest + 1e-9)["batch_size"]) == {8192, 128}
