"""The figures of docs/findings.md are what the stored studies give."""

import json
import re
from itertools import chain
from pathlib import Path

import pandas as pd
import pytest
import yaml

from examples.findings import section
from scaling.claims.q4 import best
from scaling.core import statistics
from scaling.core.grid import Cell
from scaling.core.records.run import RUN
from scaling.tables import measurements, schema

ROOT = Path(__file__).parents[3]
EPOCHS = re.compile(r"^\| (\w+), (\w+), (\d+) GPUs? \| (.*) \|$", re.MULTILINE)
REMEDY = re.compile(r"^\| [^|]+ \| `(\w+)` \| (.*) \|$", re.MULTILINE)


def config_of(study):
    return yaml.safe_load((ROOT / "studies" / study / "config.yaml").read_text(encoding="utf-8"))


def table(study, name):
    """A table of a stored study, which tests/snapshots/test_snapshots.py holds to its records."""
    folder = ROOT / "tests/snapshots/expected" / study / "tables"
    return schema.read(name, schema.TABLES[name].path(folder, study))


@pytest.mark.parametrize(("study", "count"), [("h100x2", 25), ("h200x4", 12)])
def test_every_figure_of_the_headline_is_that_of_the_records(study, count):
    cells = table(study, "timing").set_index(["recipe", "strategy", "gpus", "batch_size"])
    made = cells["epoch_seconds"].map("{:#.3g}".format).where(cells["status"] == "ok")
    made = made.fillna(cells["status"])
    sizes = config_of(study)["grid"]["batch_sizes"]
    printed = {
        (recipe, strategy, int(gpus), size): shown
        for recipe, strategy, gpus, row in EPOCHS.findall(section(study))
        for size, shown in zip(sizes, row.split(" | "), strict=True)
    }
    assert len(printed) == count and printed == made[list(printed)].to_dict()


def test_the_faster_tuned_is_that_of_its_own_study():
    speedup = table("h100x2-tuned", "speedup").set_index(["gpus", "batch_size"])
    one, two = speedup.loc[1, "epoch_seconds"], speedup.loc[2, "speedup"]
    words = "{:#.3g}, {:#.3g} and {:#.3g} s at b = 32, 128 and 512 on one H100, and "
    words = (words + "{:.2f}, {:.2f} and {:.2f} times as fast on two").format(*one, *two)
    assert words in " ".join(section("h100x2").split())


@pytest.mark.parametrize(("study", "count"), [("h200x4", 8), ("h200-large-batches", 10)])
def test_every_accuracy_of_the_remedies_is_that_of_the_records(study, count):
    batches = config_of(study)["convergence"]["global_batches"]
    accuracy = table(study, "remedies").set_index(["remedy", "global_batch"])["test_accuracy"]
    rows = REMEDY.findall(section(study))
    assert len(rows) == count
    for remedy, cells in rows:
        for batch, shown in zip(batches, cells.split(" | "), strict=True):
            value = accuracy.get((remedy, batch), "not run")
            if value != "not run":
                value = "not finite" if pd.isna(value) else f"{100 * value:.1f}"
            assert shown == value, (remedy, batch)


def test_the_prose_on_two_h100_has_the_figures_of_the_records():
    said = " ".join(section("h100x2").split())
    one, two = table("h100x2", "trained_to_accuracy").sort_values("gpus").itertuples()
    ours = table("h100x2", "utilization").query("recipe == 'tuned' and batch_size >= 2048")
    spans = [
        f"{run.training_seconds_min:.2f} to {run.training_seconds_max:.2f} s" for run in (one, two)
    ]
    low, high = (100 * ours["utilization"].agg([end]).item() for end in ("min", "max"))
    assert f"takes {spans[1]} on two GPUs** and {spans[0]} on one" in said
    assert f"{one.training_seconds / two.training_seconds:.2f} times as fast" in said
    assert f"reaches {low:.0f} to {high:.0f} % of the bf16" in said
    assert "at its power limit all the time" in said and ours["power_capped_share"].min() > 0.99


def test_the_prose_on_large_batches_has_the_figures_of_the_records():
    said = " ".join(section("h200-large-batches").split())
    found, runs = (table("h200-large-batches", name) for name in ("remedies", "convergence"))

    def chosen(remedy, batch):
        own = (runs[["remedy", "global_batch"]] == [remedy, batch]).all(axis=1)
        return runs[runs["chosen"] & own]["test_accuracy"].tolist()

    sgd = (best(found, 128, sgd=True).remedy, 128)
    slower = "muon5_slower_sgd"
    for batch, other, words in (
        (2048, sgd, "{mean:.1f} points above the best"),
        (8192, sgd, "{mean:.1f} points to the best SGD are left there"),
        (32768, sgd, "left there, {mean:.1f} at 32768"),
        (2048, ("muon", 128), "gap is left from 2048 on: {mean:.1f} points"),
        (8192, ("none", 128), "(+{mean:.1f} points, +{low:.1f} to +{high:.1f})"),
        (8192, (slower, 8192), "interval +{low:.1f} to +{high:.1f}"),
        (32768, (slower, 32768), "(+{mean:.1f}, −{low:.1f} to +{high:.1f})"),
    ):
        ours = chosen(best(found, batch).remedy, batch)
        apart = statistics.difference(chosen(*other), ours)
        points = {name: 100 * abs(getattr(apart, name)) for name in ("mean", "low", "high")}
        assert words.format(**points) in said, words
    (run,) = table("h200-large-batches", "trained_to_accuracy").itertuples()
    assert f"{run.training_seconds:.1f} s on one H200" in said and run.reached == run.seeds == 5
    assert f"({100 * run.test_accuracy_min:.1f} to {100 * run.test_accuracy_max:.1f} %)" in said


def test_the_classes_of_a_step_are_those_of_the_records():
    folder = ROOT / "studies/h200x1"
    records = [RUN.read(folder / f"step_classes/{b}.json") for b in (128, 512)]
    for own in chain(*(record["device_time"][0]["classes"].values() for record in records)):
        own["running_seconds"] = own["seconds"]  # Of one stream: no class hides behind another.
    runs = [(Cell(**record["cell"]), record) for record in records]
    measured = measurements.peaks(json.loads((folder / "peaks/peaks.json").read_text()))
    best = measured.query("precision == 'bf16' and state == 'sprint'")["value"].max()
    used = measurements.costs(runs).assign(peak_flops_per_second=best)
    tables = schema.StudyTables("h200x1", {"utilization": used, "peaks": measured})
    found = measurements.step_classes(tables, runs)
    for batch, rows in found.groupby("batch_size"):
        of = rows.set_index("kernel_class")
        step, floor = rows["seconds"].sum(), rows["least_seconds"].sum()
        ms = (1e3 * of["seconds"]).map("{:.2f}".format)
        reached = of["reached"].map("{:.0%}".format).str.replace("%", " %")
        assert (
            f"| {batch} | {1e3 * step:.2f} | {ms['products']}, {reached['products']} of peak "
            f"| {ms['element-wise']}, {reached['element-wise']} of bandwidth "
            f"| {ms['optimizer']}, {reached['optimizer']} | {ms['copies']} | {ms['idle']} "
            f"| {1e3 * floor:.2f}, {100 * floor / step:.0f} % |"
        ) in section("h100x2")
