"""Two studies beside each other: stored ones, a results folder, and bad input."""

from pathlib import Path

import pandas as pd
import pytest

import compare_studies
from examples import finished_study
from examples.page import Page
from scaling.core.errors import UserError

TABLE = "Seconds per epoch of A and B"


@pytest.fixture
def compare(tmp_path, monkeypatch, capsys):
    """The page of two studies, and what the terminal says."""
    monkeypatch.chdir(Path(__file__).parents[3])

    def made(a, b, *options):
        compare_studies.main(["--a", a, "--b", b, "--output", str(tmp_path), *options])
        (path,) = tmp_path.glob("*.html")
        return Page(path.read_text(encoding="utf-8")), capsys.readouterr().out

    return made


def test_two_stored_studies_are_compared_cell_by_cell(compare, tmp_path):
    page, said = compare("h200x1", "h200x4", "--fail-below", "0.75")
    cells = pd.read_csv(tmp_path / "h200x1-h200x4.csv").set_index(["gpus", "batch_size", "verdict"])
    # 0.518 s in one of timing.csv, 0.585 s in the other
    assert list(cells["ratio"][[(1, 512, "slower")]]) == pytest.approx([0.518 / 0.585], abs=2e-3)
    assert "5 matched cells: 5 slower, 5 only in A, 8 only in B" in said
    assert page.rows(TABLE)[-1][-1] == "only in B not in the grid"
    differing = page.rows("Machine, versions and keys")
    assert ["grid.gpus", "[1]", "[1, 2, 4]"] in differing
    assert all(row[1] != row[2] for row in differing)
    names = [row[0] for row in differing]
    first = next(i for i, name in enumerate(names) if name.startswith("convergence."))
    assert names.index("grid.gpus") < first
    assert not any(name.startswith(("recipes", "training", "grid")) for name in names[first:])
    assert "Pass mark 0.75: no cell is clearly below it." in page.text
    worst = r"below 0.95 of the speed of A in 4 cells, at worst in tuned, 1 × 8192 \(0.843×\)$"
    with pytest.raises(UserError, match=worst):
        compare("h200x1", "h200x4", "--fail-below", "0.95")


def test_a_results_folder_is_a_study_too(compare, tmp_path):
    finished_study.make(tmp_path / "mine")
    folder = tmp_path / "mine/results"
    page, _ = compare("h200x1", str(folder))
    assert page.row(TABLE, "plain")[:4] == ["1", "128", "4.98 4.43–6.59", "2.89 2.48–3.23"]
    (folder / "config.yaml").write_text("grid: 3")
    with pytest.raises(UserError, match=r"results/config.yaml is no configuration"):
        compare("h200x1", str(folder))


@pytest.mark.parametrize(
    ("a", "b", "sentence"),
    [
        ("h200x1", "nothing", "'nothing' is no study, and no results folder .* h200x4"),
        ("", "h200x1", "'' is no study, and no results folder with a config.yaml"),
        ("h200x1", "studies/h200x1", "have the same times in every cell: name two studies"),
        ("h200x1", "quantization-cifar10", "studies/quantization-cifar10 has no record of a run"),
    ],
)
def test_what_cannot_be_compared_is_one_sentence(compare, a, b, sentence):
    with pytest.raises(UserError, match=rf"^.*{sentence}.*$"):
        compare(a, b)
