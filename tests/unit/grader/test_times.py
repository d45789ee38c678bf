"""What times alone tell: another quantity in their place, clocks read too early, fixed parts."""

import pytest

from examples.grader.published_study import CELLS, HEADER, edited, said, study
from grader.study import TIMES

WITHOUT = "epoch_seconds_without_loading"
PRINTED = [name for name in HEADER.split(",") if name.startswith("printed_")]
SINGLE = [(1, 128), (1, 512)]
BARE = edited({cell: dict.fromkeys(PRINTED, "") for cell in [*SINGLE, *CELLS]})
"""Times without a figure."""


def timed(times, without=None):
    """`BARE` with other times, and with none without loading unless they are given."""
    rows = {
        cell: dict.fromkeys(["count", *TIMES], "") | {"epoch_seconds": f"{t:.4f}", WITHOUT: w}
        for cell, t, w in zip([*SINGLE, *CELLS], times, without or [""] * 6, strict=True)
    }
    return edited(rows, BARE)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        # Images per second: 50,000 / 18.0 and so on, without loading a little more
        (
            timed(
                (2778, 2941, 5110, 5750, 10221, 11494),
                ["2809", "2976", "5163", "5817", "10326", "11628"],
            ),
            {"throughput_as_time": [*SINGLE, *CELLS] * 2},
        ),
        # 5 % more than N times as fast
        (timed((18, 17, 8.55, 8.1, 4.3, 4.1)), {}),
        (timed((0.3, 0.28, 0.16, 0.145, 0.08, 0.07)), {"in_minutes": [*SINGLE, *CELLS]}),
    ],
)
def test_times_that_stand_for_something_else_are_told_without_any_figure(tmp_path, text, found):
    assert said(study(tmp_path, text)) == found


@pytest.mark.parametrize(
    ("hardware", "cells"),
    [("2 x Quadro RTX 8000", [(1, 128), (2, 128)]), ("A100", []), ("unknown", [])],
)
def test_no_gpu_computes_faster_than_at_its_peak(tmp_path, hardware, cells):
    # 50,000 · 3.33 GFLOP / 16.3 TFLOP/s = 10.2 s on one RTX 8000, 1.07 s on an A100
    (tmp_path / "studies.yaml").write_text(f"clean: {{hardware: {hardware}}}")
    text = timed((18, 17, 12, 11, 6, 5), ["9.5", "16", "5.0", "10", "5.8", "4.8"])
    assert said(study(tmp_path, text)).get("launch_times", []) == cells


def test_a_part_that_is_as_long_on_several_gpus_as_on_one_is_a_remark(tmp_path):
    # 1.2 s of evaluation on each GPU and (18 - 1.2)/N, with 10 ms for each of 196 to 25 iterations
    times = (18, 17, 11.56, 9.59, 6.38, 5.40)
    assert "fixed_part" in said(study(tmp_path, timed(times)), "info")
