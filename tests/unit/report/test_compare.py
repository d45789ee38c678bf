"""Two studies beside each other: stored ones, a published one, a results folder, and bad input."""

import re
import shutil
from pathlib import Path

import pandas as pd
import pytest

import compare_studies
from examples import finished_study
from examples.page import Page
from scaling.core.errors import UserError

ROOT = Path(__file__).parents[3]
TABLE = "Seconds per epoch of A and B"


@pytest.fixture
def compare(tmp_path, monkeypatch, capsys):
    """The page of two studies, and what the terminal says."""
    monkeypatch.chdir(ROOT)

    def made(a, b, *options):
        compare_studies.main(["--a", a, "--b", b, "--output", str(tmp_path), *options])
        (path,) = tmp_path.glob("*.html")
        return Page(path.read_text(encoding="utf-8")), capsys.readouterr().out

    return made


def test_two_stored_studies_are_compared_cell_by_cell(compare, tmp_path):
    page, said = compare("h200x2", "h200x4")
    table = pd.read_csv(tmp_path / "h200x2-h200x4.csv")
    tables = (
        ROOT / f"tests/snapshots/expected/{n}/tables/{n}/timing.csv" for n in ("h200x2", "h200x4")
    )
    keys = ["recipe", "strategy", "gpus", "batch_size"]
    a, b = (pd.read_csv(path).set_index(keys)["epoch_seconds"] for path in tables)
    cell = ("tuned", "ddp", 2, 512)
    row = table.set_index(keys).loc[cell]
    assert row["ratio"] == pytest.approx(a[cell] / b[cell]) and row["verdict"] == "slower"
    assert len(page.rows(TABLE)) == table["ratio"].notna().sum()
    assert "8 matched cells: 8 slower, 23 only in A, 5 only in B" in said
    (link,) = (named for tag, named in page.elements if "download" in named)
    assert link["download"] == "h200x2-h200x4.csv"
    assert "from one run: what differs between runs is not in it" in page.text
    assert page.row("Machine, versions and keys of the configuration", "grid.gpus") == [
        *("[1, 2]", "[1, 2, 4]")
    ]
    assert "script" not in [tag for tag, _ in page.elements]


def test_a_published_study_is_matched_with_every_recipe_and_cannot_fail(compare):
    page, _ = compare("h200x2", "lab5-v100-dp", "--fail-below", "0.95")
    rows = {tuple(row[:3]): row[3:] for row in page.rows(TABLE)}
    # 4.19 s and 0.785 s on an H200, 17.57 s printed for a V100
    assert rows["course", "1", "128"][1:3] == ["17.6", "0.238×"]
    assert rows["tuned", "1", "128"][1:4] == ["17.6", "0.0447×", "not repeated"]
    assert "unknown, as each time was measured once" in page.text


def test_the_pass_mark_decides_the_exit_status_and_names_the_worst_cells(compare):
    worst = r"below 0.95 of the speed of A in tuned, 1 × 32768 \(0.769×\); .* and 3 more$"
    with pytest.raises(UserError, match=worst):
        compare("h200x2", "h200x4", "--fail-below", "0.95")
    page, _ = compare("h200x2", "h200x4", "--fail-below", "0.75")
    assert "Pass mark 0.75: no cell is clearly below it." in page.text


def test_repeats_widen_the_noise(compare):
    page, _ = compare("h200x2", "h200-recipes")
    assert "range over 12 epochs of a cell, from 3 runs" in page.text
    assert page.rows(TABLE)[0][:3] == ["tuned", "1", "128"]
    assert "within noise" in page.rows(TABLE)[0]


def test_a_results_folder_is_read_from_its_records_or_its_tables(compare, tmp_path, monkeypatch):
    finished_study.make(tmp_path / "mine")
    folder = tmp_path / "mine/results"
    page, _ = compare("h200x2", str(folder))
    assert page.row(TABLE, "course · ddp")[:4] == ["2", "128", "2.17 2.12–2.24", "2.50"]
    shutil.rmtree(folder / "runs")
    with pytest.raises(UserError, match="has no record of a run and no tables"):
        compare("h200x2", str(folder))


@pytest.mark.parametrize(
    ("a", "b", "sentence"),
    [
        ("h200x2", "nothing", "'nothing' is no study, and no results folder .* h200x4, .*lab4-dp"),
        ("", "h200x2", "'' is no study"),
        ("h200x2", "docs", "'docs' is no study, and no results folder with a config.yaml"),
        ("h200x2", "studies/h200x2", "have the same times in every cell: name two studies"),
        ("h200x2", "quantization-cifar10", "studies/quantization-cifar10 has no record of a run"),
        ("lab4-dp", "notebook-dp", "have no cell .* with a time in both"),
    ],
)
def test_what_cannot_be_compared_is_one_sentence(compare, a, b, sentence):
    with pytest.raises(UserError, match=sentence) as refused:
        compare(a, b)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("text", ["grid: 3", "[", "study: x"])
def test_a_folder_without_a_readable_configuration_is_named(compare, tmp_path, text):
    (tmp_path / "config.yaml").write_text(text)
    with pytest.raises(UserError, match=re.escape(f"{tmp_path}/config.yaml is no configuration")):
        compare("h200x2", str(tmp_path))
