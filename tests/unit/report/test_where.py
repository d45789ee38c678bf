"""Bars of epochs, kernels of a step, and a step's timeline."""

import pytest

from examples.stored import folder_of, study
from scaling.report import cells, where
from scaling.report.table import tables
from scaling.report.views import PARTS

FLAGSHIP, FOUR = study(), study("h200x4")
CELLS = cells.of_study(FLAGSHIP).query("recipe in ('plain', 'tuned')")


def test_epochs_of_a_scale_are_as_long_as_their_seconds():
    groups = where.epochs(CELLS)
    enlarged = [heading for heading in groups if "enlarged" in heading]
    assert enlarged == [f"tuned{on}, 30 times enlarged" for on in (", 1 GPU", "/ddp, 2 GPUs")]
    scales = {"plain": [], "tuned": []}
    for heading, bars in groups.items():
        for bar in bars:
            seconds = float(bar.total.partition(" ")[0])
            scales[heading[:5]].append(sum(part.width for part in bar.parts) / seconds)
    plain, tuned = scales.values()
    assert plain == pytest.approx([plain[0]] * len(plain), rel=0.02)
    assert tuned == pytest.approx([30 * plain[0]] * len(tuned), rel=0.02)
    assert not where.epochs(CELLS.iloc[:0])


def test_kernels_of_a_step_are_its_milliseconds_with_their_limit():
    (table,) = tables([view for view in PARTS["where"] if view.name == "kernels"], FLAGSHIP, None)
    of_tuned = FLAGSHIP.step_classes.query("recipe == 'tuned' and gpus == 1 and batch_size == 128")
    rows = of_tuned.set_index("kernel_class")
    (printed,) = [row for row in table.rows if [*map(str, row[:3])] == ["tuned", "1", "128"]]
    shown = printed[table.columns.index("products")]
    milliseconds, reached = 1e3 * rows.loc["products", "seconds"], rows.loc["products", "reached"]
    assert float(shown.text) == pytest.approx(milliseconds, rel=0.005)
    assert shown.detail == f"{100 * reached:.0f} %"


def test_timeline_is_one_step_of_every_gpu():
    found = where.timelines(CELLS, folder_of("h200x2") / "runs")
    drawn = {heading.partition(":")[0]: bars for heading, bars in found.items()}
    alone = ["plain, 1 × 128", "tuned, 1 × 128"]
    pairs = ["plain/ddp, 2 × 128", "plain/dp, 2 × 128", "tuned/ddp, 2 × 128"]
    assert sorted(drawn) == sorted(alone + pairs)
    two, one = drawn["tuned/ddp, 2 × 128"], drawn["tuned, 1 × 128"]
    assert [bar.name for bar in two] == ["rank 0", "rank 1"]
    assert [bar.name for bar in one] == ["GPU 0"]
    for bar in two:
        idle, *busy = bar.parts
        assert idle.kind == where.IDLE
        assert {part.kind for part in busy} == {where.COMPUTING, where.MESSAGES}
        assert all(part.left >= 0 and part.left + part.width <= idle.width + 0.1 for part in busy)
    assert not where.timelines(cells.of_study(FOUR), folder_of("h200x4") / "runs")
