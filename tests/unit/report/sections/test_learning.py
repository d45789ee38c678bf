"""Question 4 on the page: large batches against the reference, recipes side by side."""

import pytest

from examples import report_tables
from examples.report_page import Page, section
from scaling.report.sections.learning import QUANTITIES
from scaling.tables import accuracy as learning


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> Page:
    return section(tmp_path_factory.mktemp("study"), "large_batches", report_tables.make())


def by_cell(page, title):
    return {row[1]: row for row in page.rows(title)}


def test_a_cell_is_compared_with_batch_128_on_one_gpu(page):
    found = by_cell(page, "course, dp: after epoch 5")
    # Seeds 0, 1, 2 reach 0.78, 0.77, 0.76 in epoch 5, 0.02 less on the test set.
    assert found["1 × 128"][3:] == [
        *("3", "0.860 0.840–0.880", "77.0 76.0–78.0"),
        *("0.960 0.940–0.980", "75.0 74.0–76.0", "reference"),
    ]
    assert found["4 × 32"][-1] == "+0.00 within noise"
    assert found["2 × 16384"][2:] == ["oom", "0", "no accuracy"]
    assert by_cell(page, "course, ddp: after epoch 5")["2 × 16384"][2:4] == ["diverged", "2"]


def test_a_reference_without_accuracy_and_a_study_of_one_recipe_are_said_so(tmp_path):
    tables = report_tables.make()
    runs = tables["accuracy"]
    first = (runs["gpus"] != 1) | (runs["batch_size"] != 128)
    tables["accuracy"] = runs[first & (runs["recipe"] == "course")]
    page = section(tmp_path, "large_batches", tables)
    assert by_cell(page, "course, dp: after epoch 5")["4 × 32"][-1] == "no reference"
    assert "batch 128 on 1 GPU. It has no accuracy to compare with." in page.text
    assert "No cell of the study was trained with two recipes" in page.text


def test_recipes_stand_side_by_side(page):
    rows = page.rows("course and fast: after the last epoch")
    heads = [row[0] for row in rows]
    # Three seeds with variance 1 both times: 2.77645 · sqrt(2 / 3) = 2.27.
    assert rows[heads.index("ddp, 1 × 128") + 2] == [
        *("test accuracy, %", "5", "75.00 ± 1.00, 3 seeds", "75.00 ± 1.00, 3 seeds"),
        *("+0.00", "−2.27 to +2.27", learning.AGREE),
    ]
    assert rows[heads.index("ddp, 2 × 16384")][-1] == "undecided course: 1 of 3 seeds diverged"
    assert set(learning.COMPARED) <= set(QUANTITIES)
