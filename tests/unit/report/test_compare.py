"""Two studies compared: stored ones, a results folder, and bad input."""

from pathlib import Path

import pandas as pd
import pytest

import compare_studies
from examples import stored as examples_stored
from examples.page import Page
from scaling.core.errors import UserError


@pytest.fixture
def compare(tmp_path, monkeypatch, capsys):
    """The page of two studies, and what the terminal says."""
    monkeypatch.chdir(Path(__file__).parents[3])

    def made(a, b):
        compare_studies.main(["--a", a, "--b", b, "--output", str(tmp_path)])
        (path,) = tmp_path.glob("*.html")
        return Page(path.read_text(encoding="utf-8")), capsys.readouterr().out

    return made


def test_two_stored_studies_are_compared_cell_by_cell(compare, tmp_path):
    page, said = compare("h200x1", "h200x4")
    table = pd.read_csv(tmp_path / "h200x1-h200x4.csv").set_index(["recipe", "gpus", "batch_size"])
    # 0.518 s in one of timing.csv, 0.585 s in the other; another commit measured each.
    one = table.loc["tuned", 1, 512]
    assert one["a_epoch_seconds"] == pytest.approx(0.518, abs=1e-3)
    assert one["b_epoch_seconds"] == pytest.approx(0.585, abs=1e-3)
    assert one["note"].startswith("no ratio: other code") and pd.isna(one["ratio"])
    assert "0 matched configurations: 5 no ratio, 5 only in A, 8 only in B" in said
    last = page.rows("Seconds per epoch of A and B")[-1]
    assert last[3] == "not in the grid" and last[-1] == "only in B"
    differing = page.rows("What can affect time")
    assert differing[0] == ["GPUs", "1 × NVIDIA H200", "4 × NVIDIA H200"]
    assert ["grid.gpus", "[1]", "[1, 2, 4]"] in differing
    assert all(row[1] != row[2] and not row[0].startswith("convergence") for row in differing)


def test_a_results_folder_is_a_study_too(compare, tmp_path):
    examples_stored.lay_out_finished(tmp_path / "mine")
    folder = tmp_path / "mine/results"
    page, said = compare("h200x1", str(folder))
    assert "0 matched configurations" in said
    rows = page.rows("Seconds per epoch of A and B")
    (row,) = [own for own in rows if own[:3] == ["plain", "1", "128"]]
    assert row[3] == "4.98" and row[-1].startswith("no ratio no ratio: other code")
    (folder / "config.yaml").write_text("grid: 3")
    with pytest.raises(UserError, match=r"results/config.yaml: invalid configuration"):
        compare("h200x1", str(folder))


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("nothing", "studies has no study 'nothing': there are .* h200x4"),
        ("", "studies has no study '': there are"),
        ("quantization-cifar10", "studies/quantization-cifar10 has no record of a run"),
    ],
)
def test_what_cannot_be_compared_is_one_sentence(compare, name, sentence):
    with pytest.raises(UserError, match=rf"^.*{sentence}.*$"):
        compare("h200x1", name)
