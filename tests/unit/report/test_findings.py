"""The tables of docs/findings.md are what the stored studies give."""

import json
import re
from pathlib import Path

import pandas as pd
import pytest
import yaml

from examples.findings import section
from scaling.core.grid import Cell
from scaling.core.records.run import RUN
from scaling.tables import measurements, schema
from scaling.tables.experiments import convergence

ROOT = Path(__file__).parents[3]
EPOCHS = re.compile(r"^\| (\w+), (\w+), (\d+) GPUs? \| (.*) \|$", re.MULTILINE)
REMEDY = re.compile(r"^\| [^|]+ \| `(\w+)` \| (.*) \|$", re.MULTILINE)


def config_of(study):
    return yaml.safe_load((ROOT / "studies" / study / "config.yaml").read_text(encoding="utf-8"))


def headline(study):
    """What it prints, by (recipe, strategy, gpus, batch size)."""
    sizes = config_of(study)["grid"]["batch_sizes"]
    return {
        (recipe, strategy, int(gpus), size): shown
        for recipe, strategy, gpus, cells in EPOCHS.findall(section(study))
        for size, shown in zip(sizes, cells.split(" | "), strict=True)
    }


def table(study, name):
    """A table of a stored study, which tests/snapshots/test_snapshots.py holds to its records."""
    folder = ROOT / "tests/snapshots/expected" / study / "tables"
    return schema.read(name, schema.TABLES[name].path(folder, study))


@pytest.mark.parametrize(("study", "count"), [("h100x2", 25), ("h200x4", 12)])
def test_every_figure_of_the_headline_is_that_of_the_records(study, count):
    cells = table(study, "timing").set_index(["recipe", "strategy", "gpus", "batch_size"])
    printed = headline(study)
    assert len(printed) == count
    for key, shown in printed.items():
        cell = cells.loc[key]
        if cell["status"] == "ok":
            assert shown == f"{cell['epoch_seconds']:#.3g}", key
        else:
            assert shown == cell["status"], key


def test_the_trainings_to_an_accuracy_are_those_of_the_records():
    one, two = table("h100x2", "trained_to_accuracy").sort_values("gpus").itertuples()
    said = " ".join(section("h100x2").split())
    spans = [
        f"{run.training_seconds_min:.2f} to {run.training_seconds_max:.2f} s" for run in (one, two)
    ]
    assert f"takes {spans[1]} on two GPUs** and {spans[0]} on one" in said
    assert f"{one.training_seconds / two.training_seconds:.2f} times as fast" in said


@pytest.mark.parametrize(("study", "count"), [("h200x4", 8), ("h200-large-batches", 10)])
def test_every_accuracy_of_the_remedies_is_that_of_the_records(study, count):
    section_of_config = config_of(study)["convergence"]
    accuracy = table(study, "remedies").set_index(["remedy", "global_batch"])["test_accuracy"]
    rows = REMEDY.findall(section(study))
    assert len(rows) == count
    for remedy, cells in rows:
        batches = section_of_config["global_batches"]
        for batch, shown in zip(batches, cells.split(" | "), strict=True):
            if shown == "not run":
                assert (remedy, batch) not in accuracy
                continue
            value = accuracy[remedy, batch]
            wanted = "not finite" if pd.isna(value) else f"{100 * value:.1f}"
            assert shown == wanted, (remedy, batch)


def test_the_gap_and_the_full_trainings_are_those_of_the_records():
    said = " ".join(section("h200-large-batches").split())
    found = table("h200-large-batches", "remedies")
    runs = table("h200-large-batches", "convergence")

    def over(batch, other):
        """Points of the best technique at a batch over another row, with the interval."""
        own = [
            runs[runs["chosen"] & (runs[["remedy", "global_batch"]] == list(of)).all(axis=1)]
            for of in ((convergence.best(found, batch).remedy, batch), other)
        ]
        apart = convergence.difference(*own)
        return tuple(round(100 * each, 2) for each in (apart.mean, apart.low, apart.high))

    sgd = convergence.best(found, 128, sgd=True).remedy, 128
    muon, lab = ("muon", 128), ("none", 128)
    intervals = {
        (2048, sgd): ((2.77, 2.37, 3.16), "2.8 points above the best"),
        (8192, sgd): ((-5.44,), "5.4 points to the best SGD are left there"),
        (2048, muon): ((-1.95,), "gap is left from 2048 on: 2.0 points"),
        (8192, lab): ((5.89, 3.23, 8.56), "(+5.9 points, +3.2 to +8.6)"),
        (32768, sgd): ((-28.92,), "left there, 28.9 at 32768"),
        (8192, ("muon5_slower_sgd", 8192)): ((1.67, 0.57, 2.77), "interval +0.6 to +2.8"),
        (32768, ("muon5_slower_sgd", 32768)): ((0.27, -0.65, 1.2), "(+0.3, −0.7 to +1.2)"),
    }
    for (batch, other), (measured, told) in intervals.items():
        assert over(batch, other)[: len(measured)] == measured and told in said
    (run,) = table("h200-large-batches", "trained_to_accuracy").itertuples()
    assert f"{run.training_seconds:.1f} s on one H200" in said and run.reached == run.seeds == 5
    assert f"({100 * run.test_accuracy_min:.1f} to {100 * run.test_accuracy_max:.1f} %)" in said
    assert (
        f"{run.run_seconds_min:.1f} to 16.6 s" in said
        and f"{run.joules_min / 1e3:.1f} to 3.5 kJ" in said
    )


def test_the_share_of_the_peak_and_of_the_power_limit_is_that_of_the_records():
    used = table("h100x2", "utilization")
    ours = used[(used["recipe"] == "tuned") & (used["batch_size"] >= 2048)]
    share = ours["utilization"]
    said = " ".join(section("h100x2").split())
    assert f"reaches {100 * share.min():.0f} to {100 * share.max():.0f} % of the bf16" in said
    assert "at its power limit all the time" in said and ours["power_capped_share"].min() > 0.99


def test_the_classes_of_a_step_are_those_of_the_records():
    folder = ROOT / "studies/h200x1"
    cells = {b: RUN.read(folder / f"step_classes/{b}.json") for b in (128, 512)}
    runs = [(Cell(**record["cell"]), record) for record in cells.values()]
    measured = measurements.peaks(json.loads((folder / "peaks/peaks.json").read_text()))
    best = measured.query("precision == 'bf16' and state == 'sprint'")["value"].max()
    used = measurements.costs(runs).assign(peak_flops_per_second=best)
    found = measurements.step_classes(runs, used, measured)
    said = section("h100x2")
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
        ) in said
