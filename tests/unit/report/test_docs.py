"""Figures and code in README.md, docs/findings.md, docs/quantization.md and docs/data.ipynb."""

import io
import re
from contextlib import redirect_stdout
from functools import cache

import matplotlib.pyplot as plt
import nbformat
import pytest
import yaml

from examples import stored
from examples.configurations import section
from examples.stored import FLAGSHIP, ROOT
from scaling.core import numbers as fmt
from scaling.core.grid import CELL_KEYS
from scaling.core.records.kind import VARIANT
from scaling.core.statistics import margin
from scaling.report import provenance
from scaling.tables import ranks_int8
from scaling.tables.ranks_int8 import costs, difference, reach

README = (ROOT / "README.md").read_text(encoding="utf-8")
EPOCHS = re.compile(r"^\| (\w+)(?:, (\w+))?, (\d+) GPUs? \| (.*) \|$", re.MULTILINE)
REMEDY = re.compile(r"^\| [^|]+ \| `(\w+)` \| (.*) \|$", re.MULTILINE)

study = cache(stored.study)


@pytest.fixture
def replayed(tmp_path, monkeypatch):
    """Change into a folder like a clone after `make replay` of that study."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "results/replay").mkdir(parents=True)
    (tmp_path / "results/replay" / FLAGSHIP).symlink_to(stored.EXPECTED / FLAGSHIP)
    (tmp_path / "studies").symlink_to(ROOT / "studies")
    monkeypatch.chdir(tmp_path)


def test_readme_rows_are_those_of_the_study():
    above = README[: README.index("![The first screen")]
    assert "| Seconds per epoch: ResNet-18, CIFAR-10, 128 images per GPU |" in above
    cells = study(FLAGSHIP).timing.query("batch_size == 128").set_index(["recipe", "strategy"])
    cells = cells[["epoch_seconds", "epoch_seconds_low", "epoch_seconds_high"]]
    rows = re.findall(r"^\| `(\w+)`.* \| (.*) \| (.*) \|$", above, re.MULTILINE)
    assert [name for name, *_ in rows] == ["plain", "plain", "tuned"]
    for (recipe, *printed), strategy in zip(rows, ("ddp", "dp", "ddp"), strict=True):
        values = cells.loc[[(recipe, ""), (recipe, strategy)]].to_numpy()
        assert printed == ["{:#.3g} ({:#.3g}–{:#.3g})".format(*row) for row in values]


def test_readme_names_the_commit_that_measured():
    commits = {commit[:7] for commit in study(FLAGSHIP).provenance["commit"].dropna() if commit}
    (named,) = re.findall(r"measured by commits ([^(]+) \(", README)
    assert sorted(commits) == re.findall(r"[0-9a-f]{7}", named)
    (code,) = provenance.age(study(FLAGSHIP).provenance)
    assert code in README.replace("\n", " ")


def test_readme_is_short_and_its_links_exist():
    assert len(README.splitlines()) <= 120
    targets = re.findall(r"\]\(([^)#]+)", README)
    assert not [target for target in targets if not (ROOT / target).exists()]


def test_readme_code_prints_the_epochs(replayed):
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    with redirect_stdout(io.StringIO()) as said:
        exec(code, {})
    assert re.search(r"tuned +1 +1\.56 +NaN +0\.70 +0\.50", said.getvalue())


def test_notebook_outputs_are_those_of_its_code(replayed, monkeypatch):
    monkeypatch.chdir("docs")
    monkeypatch.setattr(plt, "show", plt.close)
    book = nbformat.read(ROOT / "docs/data.ipynb", as_version=4)
    nbformat.validate(book)
    names = {}
    for cell in book.cells:
        if cell.cell_type == "code":
            with redirect_stdout(io.StringIO()) as said:
                exec(cell.source, names)
            kept = [output.text for output in cell.outputs if output.output_type == "stream"]
            assert "".join(kept) == said.getvalue(), cell.source
    assert len(book.cells) <= 12


@pytest.mark.parametrize(("name", "count"), [("h200x2", 28), ("h200x4", 12)])
def test_times_in_findings_are_those_of_the_records(name, count):
    cells = study(name).timing.set_index(CELL_KEYS)
    made = cells["epoch_seconds"].map("{:#.3g}".format).where(cells["status"] == "ok")
    made = made.fillna(cells["status"])
    sizes = sorted(set(made.index.get_level_values("batch_size")))
    printed = {
        (recipe, strategy, int(gpus), size): shown
        for recipe, strategy, gpus, row in EPOCHS.findall(section(name))
        for size, shown in zip(sizes, row.split(" | "), strict=True)
    }
    ran = {cell: shown for cell, shown in printed.items() if shown != "not run"}
    assert len(ran) == count and ran == made[list(ran)].to_dict()


def test_ladder_in_findings_is_that_of_the_records():
    keys, said = ["recipe", "batch_size"], section(FLAGSHIP)
    steps = study(FLAGSHIP).costs.query("gpus == 1").set_index(keys)["step_busy_seconds"]
    epochs = study(FLAGSHIP).timing.query("gpus == 1").set_index(keys)["epoch_seconds"]
    made = {"s": epochs, "ms": 1e3 * steps}
    rows = re.findall(r"^\| `(\w+)` \|.*?\| (\d.*) \|$", said, re.MULTILINE)
    config = yaml.safe_load((stored.folder_of(FLAGSHIP) / "config.yaml").read_text())
    assert [name for name, _ in rows] == config["grid"]["recipes"]
    for name, shown in rows:
        values = [made[unit][name, size] for unit in ("s", "ms") for size in (128, 512)]
        assert shown.split(" | ") == [f"{value:#.3g}" for value in values]


def test_accuracies_in_findings_are_those_of_the_records():
    name = "h200-large-batches"
    remedies = study(name).remedies.set_index(["remedy", "global_batch"])
    made = remedies["test_accuracy"].map("{:.1%}".format).str.removesuffix("%")
    made = made.mask(remedies.eval("diverged_seeds == seeds > 0"), "diverged")
    rows = REMEDY.findall(section(name))
    assert len(rows) == 8
    for remedy, cells in rows:
        found = made.unstack().loc[remedy].fillna("not run")
        assert cells.split(" | ") == list(found), remedy


def test_prose_on_two_h200_has_the_records_figures():
    shown, said = study(FLAGSHIP), " ".join(section(FLAGSHIP).split())
    lab = shown.speedup.query("recipe == 'plain' and strategy == 'ddp' and speedup.notna()")
    ours = shown.speedup.query("recipe == 'tuned' and gpus == 2 and speedup.notna()")["speedup"]
    small, *large = [f"{value:.2f}" for value in lab["training_speedup"].iloc[1:]]
    (dp,) = shown.costs.query("strategy == 'dp' and batch_size == 128").itertuples()
    milliseconds = 1e3 * dp.step_seconds, 1e3 * dp.step_busy_seconds
    parts, used = shown.utilization, shown.utilization.query("recipe == 'tuned'")
    ddp = shown.speedup.query("strategy == 'ddp'").set_index("recipe")
    exchanges = shown.communication.query("strategy == 'ddp'").set_index("recipe")
    shares = 100 * exchanges["delay_seconds"] / exchanges["training_seconds"]
    above, exchange = shares.max(), shares[exchanges["batch_size"] != 64].groupby(level=0).max()
    off = 100 * (ddp["speedup_high"] / ddp["speedup"] - 1).groupby(level=0).max()
    for words in (
        f"`tuned`: {ours.min():.2f} to {ours.max():.2f} times, each ± {off['tuned']:.1f} %",
        f"with ddp: {lab['speedup'].min():.2f} to {lab['speedup'].max():.2f} times",
        f"each ± {off['plain']:.0f} %",
        f"b = 512 on**: {large[0]}, {large[1]} and {large[2]} times",
        f"at 32 and 128 {lab['training_speedup'].iloc[0]:.2f} and {small} times",
        f"takes {milliseconds[0]:.1f} ms, of which kernels run for {milliseconds[1]:.1f}",
        f"at most {exchange['tuned']:.1f} % of the training time of `tuned`, "
        f"{exchange['plain']:.0f} % of that of `plain` with ddp (2 × 64: {above:.0f} %)",
    ):
        assert words in said
    assert used.query("batch_size >= 512")["power_capped_share"].min() > 0.99
    wait = parts.query("recipe == 'plain' and batch_size >= 512")["loading_share"]
    assert f"for {100 * wait.min():.0f} to {100 * wait.max():.0f} % of an epoch" in README
    assert f"`tuned` for at most {100 * used['loading_share'].max():.1f} %" in README
    (idle,) = parts.query("strategy == 'dp' and batch_size == 128")["idle_besides_share"]
    assert f"both GPUs idle for\n  about {100 * idle:.0f} % of the epoch" in README


VARIANTS = re.compile(r"^\| .* \| `([\w+-]+)` \| (.*) \|$", re.MULTILINE)
INT8 = "weights+activations+bias"


def test_int8_figures_in_the_docs_are_those_of_the_records():
    folder = ROOT / "studies/quantization-cifar10"
    documents = [VARIANT.read(path) for path in folder.glob("quantization/*/*/*.json")]
    table, words = ranks_int8.quantization(documents), section("quantization-cifar10")
    found = {row.stage: row for row in costs(table).itertuples()}
    lines = dict(VARIANTS.findall(words))
    assert {"weights", INT8, "per-channel", "w4a4"} <= lines.keys()
    for name, shown in lines.items():
        row = found[name]
        shares = f"{row.agreement_percent:.1f} | {row.compression:.2f}×"
        assert shown == f"{difference(row)} | {reach(row)} | {shares}", name
    for readme in (ROOT / "README.md", folder / "README.md"):
        told = readme.read_text(encoding="utf-8")
        assert difference(found[INT8]) in told
        assert reach(found[INT8]).partition(";")[0] in told
    for level, stage in ((127, INT8), (255, "mistake-255_for_127")):
        layers = [own for one in documents if one["variant"] == stage for own in one["layers"]]
        assert {round(own["top_step"]) for own in layers} == {level}
    reached = table.pivot_table("accuracy_percent", "seed", "stage")
    gaps = (reached["mistake-255_for_127"] - reached[INT8]).dropna()
    off = margin([gaps.std()], [len(gaps)])
    assert f"by {fmt.points(gaps.mean())} ± {off:.2f} points" in words
