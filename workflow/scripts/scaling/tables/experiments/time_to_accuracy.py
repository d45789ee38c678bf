"""Time to a fixed test accuracy: epochs times the seconds per epoch of timed cells."""

import math

import pandas as pd

from scaling.core.grid import CELL_KEYS
from scaling.tables import schema
from scaling.tables.experiments import best_remedy
from scaling.tables.experiments.best_remedy import OTHER_UPDATES
from scaling.tables.experiments.images_to_accuracy import epochs_to_target
from scaling.tables.experiments.remedies import remedies

OTHER_STEPS = f"{OTHER_UPDATES}|ghost_batch "
"""Options that make a step slower than a cell's."""
_PLACE = ["remedy", "global_batch"]


def time_to_accuracy(
    runs: pd.DataFrame, epochs: pd.DataFrame, timing: pd.DataFrame, margin: float
) -> pd.DataFrame:
    """Return one row per technique, global batch and timed cell with that global batch.

    The cells are those of `timed_with_sgd`: a technique with slower steps (LARS, Muon, ghost batch
    norm) has one row per global batch, without times, and is never `best`.

    The target is the mean test accuracy of the reference (plain SGD) after its last epoch, minus
    `margin`. A seed's epochs are those until its test accuracy first reaches it, else infinite; the
    row has the median over the seeds of the chosen rate, and `…_min`, `…_max`.

    `best` marks, at each global batch, the technique that `best_remedy.best` chooses among them;
    none without held-out images.

    `same_split`: the cell has the GPUs and batch per GPU that the convergence was measured with.
    `seconds` and `watt_hours` are the epochs times the cell's values per epoch; `reference_seconds`
    those of the `best` technique at the reference batch on one GPU, with the same recipe and
    strategy, `plain_reference_seconds` the reference's own; `speedup` and `plain_speedup` are the
    ratios, 0 if the accuracy is never reached, and `epoch_speedup` is the speedup of an epoch. A
    global batch without a timed cell has one row without times. Empty without a reference.
    """
    reference = runs[runs["reference"] & runs["chosen"].eq(True)]
    if reference.empty:
        return schema.frame("time_to_accuracy")
    target = reference["test_accuracy"].mean() - margin
    rows = []
    for place, group in epochs[epochs["chosen"].eq(True)].groupby(_PLACE, sort=False):
        found = epochs_to_target(group, "test_accuracy", target)
        own = {name.replace("epochs", "epochs_to_accuracy"): value for name, value in found.items()}
        rows.append({**dict(zip(_PLACE, place, strict=True)), "target_accuracy": target, **own})
    known = pd.DataFrame(rows).merge(remedies(runs, margin), on=_PLACE, suffixes=("", "_table"))
    known["as_timed"] = ~known["options"].str.contains(OTHER_STEPS)
    timed_alike = known[known["as_timed"]]
    best = {
        batch: row.remedy if (row := best_remedy.best(timed_alike, batch)) else None
        for batch in set(known["global_batch"])
    }
    plain, size = reference["remedy"].iloc[0], reference["global_batch"].iloc[0]

    timed = timing[timing["epoch_seconds"].notna()]
    timed = timed.reindex(columns=[*CELL_KEYS, "epoch_seconds", "watt_hours_per_epoch"])
    cells = timed.assign(global_batch=timed["gpus"] * timed["batch_size"], as_timed=True)
    single = timed[(timed["gpus"] == 1) & (timed["batch_size"] == size)]
    single = single.rename(columns={"epoch_seconds": "single"})[["recipe", "strategy", "single"]]
    split = runs.drop_duplicates(_PLACE)[[*_PLACE, "gpus"]].rename(columns={"gpus": "split"})
    table = known[[*rows[0], "as_timed"]].merge(split, on=_PLACE)
    table = table.merge(cells, "left", on=["global_batch", "as_timed"])
    table = table.merge(single, "left", on=["recipe", "strategy"])
    on_one = table[table["global_batch"] == size].drop_duplicates("remedy").set_index("remedy")
    table["best"] = table["remedy"] == table["global_batch"].map(best)
    same_split = (table["gpus"] == table["split"]).astype(object)
    table["same_split"] = same_split.where(table["gpus"].notna(), None)
    table["epoch_speedup"] = table["single"] / table["epoch_seconds"]
    table["seconds"] = table["epochs_to_accuracy"] * table["epoch_seconds"]
    table["watt_hours"] = table["epochs_to_accuracy"] * table["watt_hours_per_epoch"]
    for prefix, remedy in (("", best[size]), ("plain_", plain)):
        epochs_on_one = on_one["epochs_to_accuracy"].get(remedy, math.nan)
        table[f"{prefix}reference_seconds"] = epochs_on_one * table["single"]
        table[f"{prefix}speedup"] = table[f"{prefix}reference_seconds"] / table["seconds"]
    return schema.frame("time_to_accuracy", table)


def timed_with_sgd(timing: pd.DataFrame, provenance: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of `timing` whose runs used SGD: a recipe may use Muon or LARS."""
    other = provenance["recipe_options"].str.contains(OTHER_UPDATES).eq(True)
    cells = provenance.loc[~other, CELL_KEYS].drop_duplicates()
    return timing.merge(cells, on=CELL_KEYS)
