"""Compute speedups, and ratios of the times of two studies, with intervals of the noise model."""

from typing import Any

import numpy as np
import pandas as pd

from scaling.core import numbers as fmt
from scaling.core.grid import CELL_KEYS, RUN_KEYS
from scaling.tables import schema
from scaling.tables.noise import ENDS, NO_TIME, Noise
from scaling.tables.schema import StudyTables
from scaling.tables.timing import TIMES, of_times
from scaling.tables.work import factor

UNLIKE = "no ratio: one GPU ran with"
"""Beginning of the note on a row whose baseline, on one GPU, ran with other options."""
OTHER_WORK = "no ratio: other work, as models or the images of an epoch differ"
OF_THROUGHPUT = (
    "the speedup is of throughput, as an epoch has another number of samples than on one GPU"
)
MIXED = "no ratio: one side printed no epoch, so its time is a whole run's, start-up included"
OF_WHOLE = "the speedup is of whole runs, start-up included, as no epoch was printed"
DIVERGED = "the speedup is of a training whose loss was not finite"
NO_PAIR = "no ratio: no two runs of one seed and repeat on one machine"
JUDGED = ["slower", "unclear", "same", "faster"]
VERDICTS = [*JUDGED, "no ratio", "only in A", "only in B"]


def speedup(tables: StudyTables) -> pd.DataFrame:
    """Return the speedup T(1,b) / T(N,b) of each configuration (N GPUs, batch size b per GPU).

    T is the epoch time; in `training_speedup` it is the training time. `efficiency` is speedup / N.
    `fixed_global_batch_speedup` is T(1,N·b) / T(N,b). `note` says why a ratio is missing. It also
    marks speedups of throughput (both train on different numbers of samples), of whole runs, and of
    diverged trainings.
    """
    table = tables.timing
    gpus, several = table["gpus"], table["gpus"] > 1
    alone = table[CELL_KEYS].assign(gpus=1, strategy="")
    same_batch = alone.assign(batch_size=gpus * table["batch_size"])
    lacking = _lacking(table, alone, tables.costs)
    epoch, training = (of_times(tables.provenance, name) for name in TIMES)
    kinds = {"fixed_global_batch_": (epoch, same_batch), "training_": (training, alone)}
    for kind, (noise, cells) in {**kinds, "": (epoch, alone)}.items():
        base = cells.merge(tables.timing, "left", CELL_KEYS).add_prefix("single_")
        work = factor(tables.timing.join(base), "single_", "")
        ratios = noise.ratios(cells, table, work)
        mixed = base["single_whole"].eq(True) ^ table["whole"].eq(True)
        mixed &= ratios["ratio"].notna()
        for end in ("ratio", *ENDS):
            # One GPU is 1 time as fast as itself.
            known = several | (end == "ratio" and kind != "fixed_global_batch_")
            name = f"{kind}speedup_{end}".removesuffix("_ratio")
            table = table.assign(**{name: ratios[end].where(known & ~mixed & (lacking == ""))})
    judged = several & ~mixed & (lacking == "")
    texts = ratios[["verdict", "scope"]].where(judged, "")
    strong = base["single_epoch_seconds"].isna() & table["fixed_global_batch_speedup"].notna()
    why = "strong scaling alone: of the global batch of 1 × " + same_batch["batch_size"].astype(str)
    note = ratios["note"].where(table["epoch_seconds"].notna(), "").mask(strong, why)
    note = note.mask(judged & ratios["ratio"].notna() & (work != 1), OF_THROUGHPUT)
    note = note.mask(judged & ratios["ratio"].notna() & table["whole"].eq(True), OF_WHOLE)
    unfinite = table["status"].eq("diverged") | base["single_status"].eq("diverged")
    both = (note + "; " + DIVERGED).str.removeprefix("; ")
    note = note.mask(judged & ratios["ratio"].notna() & unfinite, both)
    note = note.mask(mixed, MIXED)
    without = UNLIKE + " " + lacking + ", which this cell cannot have"
    table[schema.interval("efficiency")] = table[schema.interval("speedup")].div(gpus, axis=0)
    more, note = ratios["more_runs"].where(judged), note.mask(lacking != "", without)
    return schema.arrange("speedup", table.assign(**texts, more_runs=more, note=note))


def _lacking(cells: pd.DataFrame, alone: pd.DataFrame, costs: pd.DataFrame) -> pd.Series:
    """Return the options that are enabled in `alone` (baseline on one GPU) but not in `cells`."""
    costs = costs.astype({"switches": object})
    both = [each.merge(costs, "left", CELL_KEYS)["switches"] for each in (cells[CELL_KEYS], alone)]
    lists = zip(both[0].fillna(both[1]).fillna(""), both[1].fillna(""), strict=True)
    lacking = [[one for one in of.split(", ") if one not in by.split(", ")] for by, of in lists]
    return pd.Series(map(", ".join, lacking), cells.index, str)


def match(a: StudyTables, b: StudyTables, pairs: bool = False) -> pd.DataFrame:
    """Return the times of two studies by configuration, in columns a_… and b_….

    `ratio` is time a / time b; the smallest ratio comes first. If `pairs`, the ratio is the
    geometric mean over pairs of runs with the same machine, seed and repeat. `verdict` says whether
    b is faster. Configurations that neither study timed are left out.
    """
    ran = pd.concat([a.provenance.assign(side="a"), b.provenance.assign(side="b")])
    noise = Noise(ran, TIMES[0], [*CELL_KEYS, "side"])
    table = _sided(a, "a").merge(_sided(b, "b"), how="outer", on=CELL_KEYS)
    rows = {side: table[CELL_KEYS].assign(side=side) for side in "ab"}
    for side, cells in rows.items():
        names = [*schema.interval(f"{side}_epoch_seconds"), f"{side}_runs"]
        table[names] = noise.times(cells)[["value", *ENDS, "runs"]]
    known = {side: table[f"{side}_epoch_seconds"].notna() for side in "ab"}
    work, both = factor(table, "a_", "b_"), known["a"] & known["b"]
    sides = rows["a"], rows["b"], work
    ratios = _of_pairs(ran, *sides) if pairs else noise.ratios(*sides)
    other = (work == 1) & (table["a_samples"] - table["b_samples"]).fillna(0).ne(0)
    other |= table.pop("a_model") != table.pop("b_model")
    other &= both & (ratios["note"] == "")
    mixed = both & (table.pop("a_whole").eq(True) ^ table.pop("b_whole").eq(True))
    for unlike, why in ((other, OTHER_WORK), (mixed, MIXED)):
        ratios.loc[unlike, ["ratio", *ENDS, "more_runs"]] = np.nan
        ratios.loc[unlike, ["verdict", "scope", "note"]] = ["", "", why]
    table = table.join(ratios)
    verdicts = {"only in A": ~known["b"], "only in B": ~known["a"], "no ratio": table["note"] != ""}
    table["verdict"] = np.select(list(verdicts.values()), list(verdicts), table["verdict"])
    table.loc[~both, "note"] = ""
    absent = dict.fromkeys(["a_status", "b_status"], "not in the grid")
    table = table[known["a"] | known["b"]].fillna(absent)
    return table.sort_values("ratio", kind="stable", ignore_index=True)


def _sided(study: StudyTables, side: str) -> pd.DataFrame:
    """Return a row per configuration. Names of columns begin with `side`, such as `a_status`."""
    table = study.timing.set_index(CELL_KEYS)[["status", "count", "samples", "unit", "whole"]]
    ran = study.provenance.astype({"model": object}).fillna({"model": ""})
    models = ran.groupby(CELL_KEYS)["model"].max()
    return table.assign(model=models).add_prefix(f"{side}_").reset_index()


def _of_pairs(ran: pd.DataFrame, one: pd.DataFrame, other: pd.DataFrame, more: Any) -> pd.DataFrame:
    """Return `more` · time of `one` / time of `other` for each row, from pairs of runs.

    The two runs of a pair have equal seed, repeat and machine. The noise model has an effect of
    each pair, instead of each machine, and fits each configuration separately.
    """
    timed = ran[ran["epoch_seconds"] > 0]
    pairs = timed[timed.groupby([*RUN_KEYS, "machine"])["side"].transform("nunique") == 2]
    own = {"machine": pairs[RUN_KEYS[4:]], "code": pairs[CELL_KEYS]}
    texts = {
        name: ["/".join(map(str, key)) for key in keys.to_numpy()] for name, keys in own.items()
    }
    noise = Noise(pairs.assign(**texts), TIMES[0], [*CELL_KEYS, "side"])
    found = noise.ratios(one, other, more)
    counts = pairs.groupby(CELL_KEYS)["machine"].agg(["size", "nunique"]).div([2, 1])
    scopes = [
        f"{fmt.plural(many, 'pair')}, {'one machine' if on == 1 else fmt.plural(on, 'machine')}"
        for many, on in one.join(counts, on=CELL_KEYS)[[*counts]].to_numpy()
    ]
    found["scope"] = pd.Series(scopes, found.index).where(found["ratio"].notna(), "")
    return found.replace({"note": {NO_TIME: NO_PAIR}})
