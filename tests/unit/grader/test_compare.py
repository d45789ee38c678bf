"""Published studies beside measured ones and one another."""

from pathlib import Path

import pytest

import compare_studies
from examples.page import Page
from scaling.core.errors import UserError

TABLE = "Seconds per epoch of A and B"


@pytest.fixture
def compare(tmp_path, monkeypatch):
    """The page of two studies."""
    monkeypatch.chdir(Path(__file__).parents[3])

    def made(a, b, *options):
        compare_studies.main(["--a", a, "--b", b, "--output", str(tmp_path), *options])
        (path,) = tmp_path.glob("*.html")
        return Page(path.read_text(encoding="utf-8"))

    return made


def test_a_published_study_is_matched_with_every_recipe_and_cannot_fail(compare):
    page = compare("h200x1", "lab5-v100-dp", "--fail-below", "0.95")
    rows = {tuple(row[:3]): row[4:7] for row in page.rows(TABLE)}
    # 4.98 s and 0.785 s on an H200, 17.57 s printed for a V100
    assert rows["plain", "1", "128"] == ["17.6", "0.283×", "not repeated"]
    assert rows["tuned", "1", "128"] == ["17.6", "0.0447×", "not repeated"]


def test_published_studies_are_named_and_two_without_a_common_cell_are_refused(compare):
    with pytest.raises(UserError, match=r"'nothing' is no study, .* h200x4, .*lab4-dp"):
        compare("h200x1", "nothing")
    with pytest.raises(UserError, match=r"have no cell .* with a time in both"):
        compare("lab4-dp", "notebook-dp")
