"""Question 1 names the cells with many images in a last batch that is not compiled."""

import pytest

from examples import report_tables
from examples.report_page import render

WORDS = "of the images are in the epoch's smaller last batch, which is not compiled"


def compiling(sizes):
    """Tables where recipe course compiles on one GPU, for `sizes` where b = 16384."""
    tables = report_tables.make()
    runs = tables["provenance"]
    one = (runs["recipe"] == "course") & (runs["strategy"] == "ddp") & (runs["gpus"] == 1)
    runs.loc[one, "recipe_options"] = "precision bf16, compile True"
    runs.loc[one & (runs["batch_size"] == 16384), "compiled_batch_sizes"] = sizes
    return tables


def test_a_study_that_compiles_nothing_names_none(tmp_path):
    assert WORDS not in render(tmp_path, report_tables.make()).text


@pytest.mark.parametrize("sizes", ["", "16384", "16384; 17232"])
def test_a_large_last_batch_that_is_not_compiled_is_named(tmp_path, sizes):
    text = render(tmp_path, compiling(sizes)).text
    # 40,000 images are 19 batches of 2048 and 1088 images, 2.7 %, or 2 of 16384 and 7232.
    assert f"1 GPU × 16384: 18 % {WORDS}" in text
    assert text.count(WORDS) == 1


def test_a_last_batch_that_is_compiled_is_not_named(tmp_path):
    assert WORDS not in render(tmp_path, compiling("16384; 7232")).text
