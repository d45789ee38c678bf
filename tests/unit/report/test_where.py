"""Bars of epochs, kernels of a step, and a step's timeline."""

import pytest

from examples.stored import folder_of, study
from scaling.report import cells, where

FLAGSHIP, TUNED = study(), study("h100x2-tuned")


def test_epochs_of_a_scale_are_as_long_as_their_seconds():
    groups = where.epochs(cells.of_study(FLAGSHIP))
    enlarged = [group.heading for group in groups if "enlarged" in group.heading]
    assert enlarged == [f"tuned{on}, 19 times enlarged" for on in (", 1 GPU", "/ddp, 2 GPUs")]
    scales = {"plain": [], "tuned": []}
    for group in groups:
        for bar in group.bars:
            seconds = float(bar.total.partition(" ")[0])
            scales[group.heading[:5]].append(sum(part.width for part in bar.parts) / seconds)
    plain, tuned = scales.values()
    assert plain == pytest.approx([plain[0]] * len(plain), rel=0.02)
    assert tuned == pytest.approx([19 * plain[0]] * len(tuned), rel=0.02)
    assert not where.epochs(cells.of_study(FLAGSHIP).iloc[:0])


def test_kernels_of_a_step_are_its_milliseconds_with_their_limit():
    group = next(one for one in where.kernels(TUNED) if one.heading.startswith("tuned, 1 × 128"))
    rows = TUNED.step_classes.query("gpus == 1 and batch_size == 128")
    products = next(rows[rows["kernel_class"] == "products"].itertuples())
    assert f"{1e3 * rows['seconds'].sum():.2f} ms" in group.heading
    (bar,) = [bar for bar in group.bars if bar.name == "products"]
    least, rest = (part.width for part in bar.parts)
    assert least / (least + rest) == pytest.approx(products.least_seconds / products.seconds, 0.01)
    assert bar.total.endswith(f"{100 * products.reached:.0f} % of limit")
    assert not where.kernels(FLAGSHIP)


def test_timeline_is_one_step_of_every_gpu():
    runs = folder_of("h100x2-tuned") / "runs"
    two, one = where.timelines(cells.of_study(TUNED), runs)
    assert two.heading.startswith("tuned/ddp, 2 × 128") and one.heading.startswith("tuned, 1 × 128")
    assert [bar.name for bar in two.bars] == ["rank 0, GPU 0", "rank 1, GPU 0"]
    for bar in two.bars:
        idle, *busy = bar.parts
        assert idle.kind == where.IDLE
        assert {part.kind for part in busy} == {where.COMPUTING, where.MESSAGES}
        assert all(part.left >= 0 and part.left + part.width <= idle.width + 0.1 for part in busy)
    assert not where.timelines(cells.of_study(FLAGSHIP), folder_of("h100x2") / "runs")
