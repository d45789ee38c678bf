"""Make tables of loss and accuracy: of runs, time-to-accuracy trainings, and techniques."""

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from scaling.core.grid import CELL_KEYS, REFERENCE_BATCH
from scaling.core.records.run import RunRecord, TechniqueRecord
from scaling.core.statistics import CONFIDENCE, margin
from scaling.registry.update_rule import Technique
from scaling.tables import schema
from scaling.tables.noise import Noise
from scaling.tables.schema import StudyTables
from scaling.tables.timing import Run, about, break_even, compiled, epochs, joules, origin

MEANS = ["train_loss", "train_accuracy"]
LEARNING = [*MEANS, "test_accuracy"]
SEEDS = 3
"""With fewer seeds, intervals of a difference use the standard deviation pooled over configurations
(`_equal_trainings`): two seeds alone would give an interval of ± 9 standard deviations."""
EPOCH = 5
AS_WELL = 0.02
"""A configuration is as accurate as its reference if the interval of the difference in accuracy
(configuration minus reference) is above `-AS_WELL`."""
SPREAD = ["test_accuracy", "training_seconds", "run_seconds", "run_cold_seconds", "joules"]
WHOLE = ["epochs", "training_seconds", "run_seconds", "joules"]
TEXTS = ["verdict", "scope", "note"]
SPEEDUP = {"ratio": "speedup", "low": "speedup_low", "high": "speedup_high"}
SAME = ["options", "status", "message", "reference", "at_edge"]
CHOSEN = ["factor", "learning_rate", "planned_epochs", "planned_updates"]


def accuracy(runs: list[Run]) -> pd.DataFrame:
    """Return loss and accuracy of each run in each planned epoch (from 1).

    Training metrics are means over ranks, weighted by samples. The last epoch has the test metrics.
    The accuracies of a diverged run are NaN. A run without epochs has one row, without metrics.
    """
    rows: list[dict[str, Any]] = []
    for cell, record in runs:
        shared = {**asdict(cell), "status": record["status"] if record else "missing"}
        trained: list[dict[str, Any]] = []
        if record and record["epochs"]:
            planned = record["training"]["warmup_epochs"] + record["training"]["measured_epochs"]
            ranks = pd.DataFrame(record["epochs"]).query(f"epoch <= {planned}")
            for epoch, of_ranks in ranks.groupby("epoch"):
                # A command that prints no samples has 0.
                weights, metrics = of_ranks["samples"].clip(1), of_ranks[MEANS].astype(float)
                means = zip(MEANS, np.average(metrics, axis=0, weights=weights), strict=True)
                trained.append({"epoch": epoch, **dict(means)})
            trained[-1] |= record["evaluation"] or {}
        hidden = dict.fromkeys(LEARNING[1:]) if shared["status"] == "diverged" else {}
        rows += [shared | row | hidden for row in trained or [{}]]
    return schema.arrange("accuracy", rows)


def compare_batches(tables: StudyTables) -> pd.DataFrame:
    """Return loss and accuracy of each configuration, and `difference` from its recipe's reference.

    Values are means over seeds, with 95 % intervals. `test_accuracy_min` and `test_accuracy_max`
    are over all runs, repeats included. Training metrics are of epoch 5, or of the last epoch if
    there are fewer. `difference` is test accuracy minus the reference's. A recipe's reference ran
    on 1 GPU with batch size 128 (with techniques: their reference batch) or, without such a run,
    with the smallest batch size. With fewer than 3 seeds, the interval of `difference` uses the
    standard deviation pooled over all configurations.
    """
    # A seed's repeats start alike, and may even end alike: they count as one training.
    of_seeds = tables.accuracy.groupby([*CELL_KEYS, "seed", "epoch"], dropna=False)
    accuracy, remedies = of_seeds[LEARNING].mean().reset_index(), tables.remedies
    last = accuracy.groupby("recipe")["epoch"].transform("max").clip(upper=EPOCH)
    at_last = accuracy[MEANS].where(accuracy["epoch"] == last)
    cells = accuracy.assign(last=last, **at_last).groupby(CELL_KEYS)
    figures = cells[LEARNING].agg(["mean", "count", "std"])
    figures.columns = figures.columns.map("_".join).str.removesuffix("_mean")
    figures["epoch"] = cells["last"].first()
    runs = tables.accuracy.groupby(CELL_KEYS)["test_accuracy"]
    figures["test_accuracy_min"], figures["test_accuracy_max"] = runs.min(), runs.max()
    table = tables.timing[[*CELL_KEYS, "status"]].merge(figures, how="left", on=CELL_KEYS)
    table = table.fillna({"test_accuracy_count": 0})
    table["global_batch_size"] = table["gpus"] * table["batch_size"]
    chosen = remedies.loc[remedies["reference"].eq(True), "global_batch"]
    size = next(iter(chosen), REFERENCE_BATCH)
    alone = table[table["gpus"] == 1].assign(other=table["batch_size"] != size)
    alone = alone.sort_values(["other", "batch_size"]).drop_duplicates("recipe")
    table["reference"] = table.index.isin(alone.index)
    test = [f"test_accuracy{end}" for end in ("", "_std", "_count")]
    base = table[["recipe"]].merge(alone[["recipe", *test]], how="left", on="recipe")
    gap = (table["test_accuracy"] - base["test_accuracy"]).mask(table["reference"])
    spreads, counted = ([each[name] for each in (table, base)] for name in test[1:])
    spread, freedom = _equal_trainings(accuracy)
    pooled = stdtrit(freedom, (1 + CONFIDENCE) / 2) * spread * np.sqrt(sum(1 / n for n in counted))
    off = pooled.where(np.minimum(counted[0], counted[1]) < SEEDS, margin(spreads, counted))
    ends = {"difference_low": gap - off, "difference_high": gap + off}
    for name in LEARNING:
        off = margin([table[f"{name}_std"]], [table[f"{name}_count"]])
        ends[f"{name}_low"], ends[f"{name}_high"] = (table[name] - off).clip(0), table[name] + off
    return table.assign(difference=gap, **ends, as_well=ends["difference_low"] > -AS_WELL)


def _equal_trainings(accuracy: pd.DataFrame) -> tuple[float, int]:
    """Return the pooled standard deviation of test accuracies, and its degrees of freedom.

    Deviations are from the mean over trainings with equal recipe, global batch and number of
    epochs. If no two trainings are equal in these, return (NaN, 0).
    """
    alike = [accuracy["recipe"], accuracy["gpus"] * accuracy["batch_size"], accuracy["epoch"]]
    groups = accuracy["test_accuracy"].dropna().groupby(alike)
    freedom = groups.count() - 1
    squares, whole = (freedom * groups.var()).sum(), int(freedom.sum())
    return (math.sqrt(squares / whole), whole) if whole else (math.nan, 0)


def trained_to_accuracy(records: Sequence[RunRecord], accuracy: float) -> pd.DataFrame:
    """Return a row per number of GPUs, for trainings with the target `accuracy`.

    Values are medians and ranges over trainings; epochs, times and joules are only of trainings
    with status "ok". `training_seconds` is the sum of epoch times, corrected for machine
    differences (noise.py), but its range is not corrected. `run_cold_seconds` is of runs that
    compiled code, `run_seconds` of all others. `speedup` (of training seconds) and `break_even_…`
    compare with the fewest GPUs. They are NaN unless all trainings on either number of GPUs reached
    the accuracy. Columns `schema.ORIGIN` have the values of all trainings.
    """
    trainings = pd.DataFrame([_training(record, accuracy) for record in records])
    whole, cold = trainings["run_seconds"].astype(float), trainings["compiled"].eq(True)
    trainings = trainings.assign(
        run_seconds=whole.mask(cold),
        run_cold_seconds=whole.where(cold),
        epoch_seconds=trainings["training_seconds"] / trainings["epochs"],
        other_seconds=whole - trainings["training_seconds"],
    )
    groups, model = trainings.groupby("gpus"), Noise(trainings, "training_seconds")
    ends = {"": "median", "_min": "min", "_max": "max"}
    spans = [groups[SPREAD].agg(how).add_suffix(end) for end, how in ends.items()]
    counts = groups.agg(seeds=("seed", "size"), reached=("reached", "sum"))
    shared = trainings.drop(columns=[*SPREAD, "reached"]).groupby("gpus").first()
    origins = [*trainings.columns.intersection(schema.ORIGIN)]
    shared[origins] = groups[origins].agg(_joined)
    table = shared.join([counts, *spans]).reset_index()
    all_reached = table["reached"] == table["seeds"]
    compared = all_reached & all_reached.iloc[0]
    ratios = model.ratios(table.iloc[[0] * len(table)].set_axis(table.index), table)
    ratios = ratios[compared & (table.index > 0)]
    table = table.join(ratios.rename(columns=SPEEDUP)).fillna(dict.fromkeys(TEXTS, ""))
    table["training_seconds"] = model.times(table)["value"]
    of_gpus = [own for _, own in groups]
    lengths = pd.DataFrame([break_even(of_gpus[0], own) for own in of_gpus])
    return schema.frame("trained_to_accuracy", table.join(lengths[compared]))


def _joined(texts: pd.Series) -> str:
    return "; ".join(schema.parts(texts.dropna()))


def _training(record: RunRecord, accuracy: float) -> dict[str, object]:
    cell, trained = record["cell"], epochs([record], "warmup", "measured")
    known = {*schema.TABLES["trained_to_accuracy"].types, "machine", "code"}
    test = (record["evaluation"] or {}).get("test_accuracy", math.nan)
    row = {
        **cell,
        **about(record, known),
        "global_batch": cell["gpus"] * cell["batch_size"],
        "target_accuracy": accuracy,
        "epochs": len(trained),
        "test_accuracy": test,
        "reached": record["status"] == "ok" and test >= accuracy,
        "training_seconds": trained["seconds"].sum(),
        "run_seconds": record["run_seconds"],
        "compiled": compiled(record),
        "joules": joules(record, "warmup", "measured"),
    }
    return row if record["status"] == "ok" else row | dict.fromkeys(WHOLE, math.nan)


def convergence(records: Sequence[TechniqueRecord]) -> pd.DataFrame:
    """Return a row per run of each technique, with metrics of the run's last epoch.

    A technique without runs has one row. `reference` is true for plain SGD at the reference batch.
    If several techniques are plain SGD, it is true for that with the most learning rates tried.
    """
    reference = max(records, key=_rates_of_plain_sgd, default=None)
    rows: list[dict[str, Any]] = []
    known = schema.TABLES["convergence"].types
    for record in records:
        values: dict[str, Any] = {**record, **(record["result"] or {"runs": []})}
        values |= origin(record["environment"], known)
        values["options"] = ", ".join(_changed(record).values())
        values["reference"] = record is reference and _rates_of_plain_sgd(record) > 0
        runs = [run | run["epochs"][-1] | {"epochs": len(run["epochs"])} for run in values["runs"]]
        rows += [values | run for run in runs or [{}]]
    return schema.frame("convergence", rows)


def _rates_of_plain_sgd(record: TechniqueRecord) -> int:
    """Return how many learning rates were tried; 0 if not plain SGD at the reference batch."""
    at_reference = record["global_batch"] == record["training"]["reference_batch"]
    # There every scaling rule gives the base rate.
    plain = at_reference and _changed(record).keys() <= {"scaling"}
    result = record["result"] if plain else None
    return len({run["factor"] for run in result["runs"]}) if result else 0


def _changed(record: TechniqueRecord) -> dict[str, str]:
    """Return {option: text} for the options of a technique that differ from plain SGD."""
    plain = Technique().model_dump(exclude={"factors"})
    changes = {}
    for name, value in record["options"].items():
        if name in plain and value not in (plain[name], None):
            number = f"{value:g}" if isinstance(value, float) else value
            on = name if value else f"no {name}"
            changes[name] = on if isinstance(value, bool) else f"{name} {number}"
    return changes


def remedies(runs: pd.DataFrame, accuracy_margin: float) -> pd.DataFrame:
    """Return a row per technique and global batch: means over seeds at the chosen learning rate.

    A seed whose loss was not finite has no accuracy. If no seed has one, `status` is "diverged".
    `validation_accuracy` is from the sweep that chose the learning rate. `accuracy_margin`, the
    tolerated decrease of test accuracy (a fraction), becomes a column.
    """
    keys, held_out = ["remedy", "global_batch"], runs[runs["held_out"].eq(True)]
    chosen = runs[runs["chosen"].eq(True)].assign(failed=runs["diverged"] != "")
    of_seeds = chosen.groupby(keys, as_index=False).agg(
        **{name: (name, "first") for name in CHOSEN},
        seeds=("seed", "size"),
        diverged_seeds=("failed", "sum"),
        test_accuracy=("test_accuracy", "mean"),
        test_accuracy_min=("test_accuracy", "min"),
        test_accuracy_max=("test_accuracy", "max"),
    )
    swept = held_out.groupby([*keys, "factor"], as_index=False)["validation_accuracy"].mean()
    table = runs.drop_duplicates(keys)[[*keys, *SAME]].merge(of_seeds, "left", keys)
    table = table.merge(swept, "left", [*keys, "factor"])
    lost = (table["diverged_seeds"] > 0) & table["test_accuracy"].isna()
    status = table["status"].mask(lost, "diverged")
    return schema.frame("remedies", table.assign(status=status, accuracy_margin=accuracy_margin))
