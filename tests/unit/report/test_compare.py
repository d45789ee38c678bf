"""Comparison of two studies or recipes, and its exit status."""

import json
from pathlib import Path

import pandas as pd
import pytest

import compare_studies
from compare_studies import decide, markdown
from examples import stored as examples_stored
from examples.records import epoch, record, save
from scaling.core.errors import UserError
from scaling.core.grid import Cell
from scaling.tables import ratios

NOISE = (0.004, -0.004, 0.002, -0.002, 0.003, -0.003)
COMMAND = {"engine": "command", "command": "train", "recipe_options": {}, "epoch_lines": 3}
OPTIONS = {"command": "train", "unit": "samples", "samples": None}


@pytest.fixture
def compare(tmp_path, monkeypatch, capsys):
    """Return a function that compares two studies, and returns the file's rows and the output."""
    monkeypatch.chdir(Path(__file__).parents[3])

    def made(a, b):
        compare_studies.main(["--a", a, "--b", b, "--output", str(tmp_path)])
        (path,) = tmp_path.glob("*.md")
        lines = path.read_text(encoding="utf-8").splitlines()
        rows = [line[2:-2].split(" | ") for line in lines if line[:3] not in ("", "| -")]
        return {row[0]: row[1:] for row in rows}, capsys.readouterr().out

    return made


def test_two_stored_studies_are_compared_cell_by_cell(compare, tmp_path):
    rows, said = compare("h200x2", "h200x4")
    table = pd.read_csv(tmp_path / "h200x2-h200x4.csv").set_index(["recipe", "gpus", "batch_size"])
    # 0.497 s in one of timing.csv, 0.585 s in the other; another commit measured each.
    one = table.loc["tuned", 1, 512]
    assert one["a_epoch_seconds"] == pytest.approx(0.4975, abs=1e-3)
    assert one["b_epoch_seconds"] == pytest.approx(0.585, abs=1e-3)
    assert one["note"].startswith("no ratio: other code") and pd.isna(one["ratio"])
    assert "0 matched configurations: 7 no ratio, 31 only in A, 6 only in B" in said
    assert rows["tuned/ddp, 4 × 8192"][:4] == ["not in the grid", "0.144", "", "only in B"]
    assert rows["GPUs"] == ["2 × NVIDIA H200", "4 × NVIDIA H200"]
    assert rows["grid.gpus"] == ["[1, 2]", "[1, 2, 4]"]
    differing = {name: row for name, row in rows.items() if len(row) == 2}
    assert all(a != b and not name.startswith("convergence") for name, (a, b) in differing.items())


def test_results_folder_is_a_study_too(compare, tmp_path):
    examples_stored.lay_out_finished(tmp_path / "mine")
    folder = tmp_path / "mine/results"
    rows, said = compare("h200x2", str(folder))
    assert "0 matched configurations" in said
    row = rows["plain, 1 × 128"]
    assert row[0] == "6.69" and row[-1].startswith("no ratio: other code")
    (folder / "config.yaml").write_text("grid: 3")
    with pytest.raises(UserError, match=r"results/config.yaml: invalid configuration"):
        compare("h200x2", str(folder))


def test_study_without_runs_is_not_compared(compare):
    with pytest.raises(UserError, match="quantization-cifar10 has no record of a run"):
        compare("h200x2", "quantization-cifar10")


def runs(seconds, recipe="mine", machine="a", samples=50_000, **training):
    """Return one run per epoch time, on one GPU. By default, the runs are of a user's command."""
    made = []
    for repeat, each in enumerate(seconds):
        cell = Cell(recipe, "own", 1, 32, 0, repeat)
        ran = record(cell, [epoch(number, each, samples=samples) for number in (1, 2, 3)])
        ran["training"] |= training or COMMAND
        ran["environment"] = {"machine": machine, "code_digest": "x", "hosts": ["h"]}
        made.append((cell, ran))
    return made


def timed(runs, name=""):
    """Return timing tables of runs. Runs that have recorded a command count as a user's command."""
    commands = {cell.recipe: OPTIONS for cell, own in runs if "epoch_lines" in own["training"]}
    return compare_studies.timed(runs, commands, name)


def around(seconds):
    return [seconds * (1 + off) for off in NOISE]


A, EAGER = runs(around(1.0)), runs(around(1.0), engine="eager")


@pytest.mark.parametrize(
    ("a", "b", "status", "text"),
    [
        (A, runs(around(1.05)), 2, "**slower**, 5.0 % slower"),
        (A, runs(around(1.015)), 0, "slower, 1.5 % slower"),
        (A, runs(around(1.0)), 0, "same"),
        (A, runs(around(1.05), machine="b"), 3, "no chain of machines"),
        (A, runs([1.05]), 2, "slower"),
        (A, runs(around(1.05), "other"), 3, "| configuration"),
        # Of a user's command alone, runs with other numbers of images are compared.
        (A, runs(around(1.05), samples=100_000), 0, "faster"),
        (EAGER, runs(around(1.05), engine="eager", samples=9), 3, "not judged | no ratio: other w"),
    ],
)
def test_gate_judges_by_limit_noise_and_work(a, b, status, text):
    found, rows = decide(ratios.match(timed(a), timed(b)), 0.02)
    assert found == status and text in markdown(rows)


def test_pairs_find_one_percent():
    """Six pairs reveal 1 % on a machine that drifts by 20 %. Equal runs have the verdict `same`."""
    drift = [1.0, 1.2, 1.15, 1.05, 1.1, 1.02]
    a = [one * (1 + off / 8) for one, off in zip(drift, NOISE, strict=True)]
    b = [one * (1.01 - off / 8) for one, off in zip(drift, NOISE, strict=True)]
    old, new = timed(runs(a, "old"), "old → new"), timed(runs(b, "new"), "old → new")
    status, rows = decide(ratios.match(old, new, pairs=True), 0.005)
    assert status == 2 and rows["slower"].tolist() == pytest.approx([0.01], abs=2e-4)
    assert rows["scope"].tolist() == ["6 pairs, one machine"]
    elsewhere = timed(runs(b, "new", machine="b"), "old → new")
    status, rows = decide(ratios.match(old, elsewhere, pairs=True), 0.005)
    assert status == 3 and rows["note"].tolist() == [ratios.NO_PAIR]
    status, rows = decide(ratios.match(old, old, pairs=True), 0.005)
    assert status == 0 and rows["verdict"].tolist() == ["same"]


def test_gate_exits_with_its_status(tmp_path, capsys):
    """The compared recipes are in one results folder. Markdown and JSON are written."""
    grid = {"recipes": ["old", "new"], "gpus": [1], "batch_sizes": [32], "repeats": 6}
    examples_stored.lay_out_finished(
        tmp_path,
        grid=examples_stored.CONFIG["grid"] | grid,
        recipes={"old": OPTIONS, "new": dict(OPTIONS)},
    )
    results = tmp_path / "results"
    for cell, ran in [*runs(around(1.0), "old"), *runs(around(1.05), "new")]:
        save(results / "runs", ran | {"cell": vars(cell)})
    words = ["--a", f"{results}:old", "--b", f"{results}:new", "--output", str(tmp_path)]
    with pytest.raises(SystemExit) as ended:
        compare_studies.main([*words, "--fail", "2%"])
    printed = capsys.readouterr().out
    gate = json.loads((tmp_path / "gate.json").read_text())
    assert ended.value.code == gate["status"] == 2 and gate["rows"][0]["failed"]
    assert (tmp_path / "gate.md").read_text() in printed and "old → new" in printed


def test_limit_needs_its_percent_sign():
    assert [*map(compare_studies.limit_of, ("2%", "1.5 %", "0.02"))] == [0.02, 0.015, 0.02]
    for text in ("2", "1.0", "-2%", "two"):
        with pytest.raises(UserError, match=f"FAIL is '{text}': write how much slower .* as 2%"):
            compare_studies.limit_of(text)
