"""The README's tables are what the stored studies give."""

import re
from pathlib import Path

import pandas as pd
import pytest
import yaml

from examples.readme import section
from scaling.core import files, grid
from scaling.core.records import read_convergence, read_record
from scaling.tables import accuracy as learning
from scaling.tables.accuracy import accuracy
from scaling.tables.communication import communication
from scaling.tables.experiments import convergence as run_tables
from scaling.tables.experiments import remedies
from scaling.tables.experiments.time_to_accuracy import time_to_accuracy
from scaling.tables.limits import peaks
from scaling.tables.measurements import costs
from scaling.tables.timing import timing
from scaling.tables.utilization import utilization

ROOT = Path(__file__).parents[3]
EPOCHS = re.compile(r"^\| (\w+), (\w+), (\d+) GPUs? \| (.*) \|$", re.MULTILINE)
REMEDY = re.compile(r"^\| [^|]+ \| `(\w+)` \| (.*) \|$", re.MULTILINE)


def config_of(study):
    return yaml.safe_load((ROOT / "studies" / study / "config.yaml").read_text(encoding="utf-8"))


def headline(study):
    """What the README prints, by (recipe, strategy, gpus, batch size)."""
    sizes = config_of(study)["grid"]["batch_sizes"]
    return {
        (recipe, strategy, int(gpus), size): shown
        for recipe, strategy, gpus, cells in EPOCHS.findall(section(study))
        for size, shown in zip(sizes, cells.split(" | "), strict=True)
    }


def runs_of(study):
    """The runs of the grid that there are records of, with these."""
    folder = ROOT / "studies" / study / "runs"
    runs = grid.expand(**config_of(study)["grid"])
    there = [run for run in runs if run.record_path(folder).exists()]
    return [(run, read_record(run.record_path(folder))) for run in there]


def measured(study):
    return timing(runs_of(study))


def test_the_headline_has_the_recipes_and_strategies_of_the_study():
    shown, table = {key[:3] for key in headline("h200x2")}, measured("h200x2")
    several = table[(table["gpus"] > 1) | (table["strategy"] == "ddp")]
    assert shown == set(several[["recipe", "strategy", "gpus"]].itertuples(index=False, name=None))


@pytest.mark.parametrize(("study", "count"), [("h200x2", 36), ("h200x4", 12)])
def test_every_figure_of_the_headline_is_that_of_the_records(study, count):
    cells = measured(study).set_index(["recipe", "strategy", "gpus", "batch_size"])
    printed = headline(study)
    assert len(printed) == count
    for key, shown in printed.items():
        cell = cells.loc[key]
        if cell["status"] == "ok":
            assert shown == f"{cell['epoch_seconds']:#.3g}", key
        else:
            assert shown == cell["status"], key


@pytest.fixture(scope="module")
def convergence():
    """The records of remedies in h200x4."""
    paths = sorted((ROOT / "studies/h200x4/convergence").rglob("*.json"))
    return [read_convergence(path) for path in paths]


def test_the_time_to_an_accuracy_is_that_of_the_records(convergence):
    runs, epochs = run_tables.runs(convergence), run_tables.epochs(convergence)
    margin = config_of("h200x4")["convergence"]["accuracy_margin"]
    table = time_to_accuracy(runs, epochs, measured("h200x4"), margin)
    of_decay = table[table["remedy"] == "decay"].set_index(["gpus", "batch_size"])
    one, four = (of_decay["seconds"][place] for place in ((1, 128), (4, 128)))
    said = f"is {one:.3g} s on one GPU with batch 128 and {four:.3g} s on four with 4 × 128"
    assert said in " ".join(section("h200x4").split())


def test_every_accuracy_of_the_remedies_is_that_of_the_records(convergence):
    section_of_config = config_of("h200x4")["convergence"]
    runs = run_tables.runs(convergence)
    table = remedies.remedies(runs, section_of_config["accuracy_margin"])
    accuracy = table.set_index(["remedy", "global_batch"])["test_accuracy"]
    rows = REMEDY.findall(section("h200x4"))
    assert len(rows) == 8
    for remedy, cells in rows:
        batches = section_of_config["global_batches"]
        for batch, shown in zip(batches, cells.split(" | "), strict=True):
            value = accuracy[remedy, batch]
            wanted = "not finite" if pd.isna(value) else f"{100 * value:.1f}"
            assert shown == wanted, (remedy, batch)


def test_the_share_of_the_peak_and_of_the_power_limit_is_that_of_the_records():
    runs, times = runs_of("h200x2"), measured("h200x2")
    rates = peaks(files.read_json(ROOT / "studies/h200x2/peaks/peaks.json"))
    used = utilization(times, communication(times), rates, costs(runs))
    ours = used[(used["recipe"] == "tuned") & (used["strategy"] == "ddp")]
    share = ours[ours["batch_size"] >= 2048]["utilization"]
    held_back = ours[ours["batch_size"] >= 512]["power_capped_share"]
    said = " ".join(section("h200x2").split())
    of_peak = f"reaches {100 * share.min():.0f} to {100 * share.max():.0f} % of the bf16"
    assert of_peak in said
    assert f"for at least {100 * held_back.min():.0f} % of an epoch" in said


def test_the_quality_of_the_recipes_is_that_of_the_records():
    table = learning.compare_recipes(accuracy(runs_of("h200-recipes"), "h200-recipes"))
    row = table.set_index("quantity").loc["test_accuracy"]
    said = " ".join(section("h200-recipes").split())
    for name, recipe in (("first", "course"), ("second", "tuned")):
        mean, deviation = 100 * row[f"{name}_mean"], 100 * row[f"{name}_std"]
        assert f"{mean:.1f} ± {deviation:.1f} % with `{recipe}`" in said
    assert row["verdict"] == learning.AGREE and "a difference within noise" in said
