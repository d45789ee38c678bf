"""Speedups, and the ratios of the times of two studies, by the model of noise."""

from typing import NamedTuple

import numpy as np
import pandas as pd

from scaling.core.grid import CELL_KEYS
from scaling.tables import schema
from scaling.tables.noise import ENDS, Noise
from scaling.tables.schema import StudyTables
from scaling.tables.timing import of_times, with_single_gpu
from scaling.tables.work import factor

UNLIKE = "no ratio: one GPU ran with"
"""How the note of a cell begins whose baseline is another program."""
VERDICTS = ["slower", "unclear", "same", "faster", "no ratio", "only in A", "only in B"]


def speedup(tables: StudyTables) -> pd.DataFrame:
    """Return the speedups of each cell, T(1,b) / T(N,b), of epoch and training time.

    `efficiency` is a speedup / N, `weak_speedup` N · t(1,b) / t(N,b) of steps, and
    `fixed_global_batch_speedup` T(1,N·b) / T(N,b). A cell that ran without a switch of its baseline
    has no ratio but a `note`, as DataParallel without compiled steps; that of a cell which is in
    the grid for strong scaling says so.
    """
    timing, ran = tables.timing, tables.provenance
    table = with_single_gpu(timing, timing, "batch_size")
    gpus = table["gpus"]
    alone = table[CELL_KEYS].assign(gpus=1, strategy="")
    same_batch = alone.assign(batch_size=gpus * table["batch_size"])
    keys = table[["recipe"]].assign(global_batch=same_batch["batch_size"])
    whole = with_single_gpu(keys, timing, "global_batch").assign(**table[["samples", "unit"]])
    more = factor(whole, "single_", "")
    fixed = of_times(ran, "epoch_seconds").ratios(same_batch, table, more)
    for end in ("ratio", *ENDS):
        name = f"fixed_global_batch_speedup_{end}".removesuffix("_ratio")
        table[name] = fixed[end].where(gpus > 1)
    found = {"": of_times(ran, "epoch_seconds"), "training_": of_times(ran, "training_seconds")}
    for of, noise in found.items():
        own = noise.ratios(alone, table, factor(table, "single_", ""))
        for end in ("", "_low", "_high"):
            known = own[end.removeprefix("_") or "ratio"].where((gpus > 1) | (end == ""))
            table[f"{of}speedup{end}"], table[f"{of}efficiency{end}"] = known, known / gpus
        table[f"{of}verdict"] = own["verdict"].where(gpus > 1, "")
        if not of:
            table[["scope", "more_runs", "note"]] = own[["scope", "more_runs", "note"]]
    table["weak_speedup"] = (
        table["speedup"] * table["iterations"] * gpus / table["single_iterations"]
    )
    table["weak_efficiency"] = table["weak_speedup"] / gpus
    table.loc[gpus == 1, "scope"] = ""
    table.loc[gpus == 1, "more_runs"] = np.nan
    table.loc[table["epoch_seconds"].isna(), "note"] = ""
    lacking = pd.Series(_lacking(table, tables.costs), table.index, str)
    strong = table["single_epoch_seconds"].isna() & fixed["ratio"].notna() & (gpus > 1)
    why = "strong scaling alone: of the global batch of 1 × " + same_batch["batch_size"].astype(str)
    table.loc[strong, "note"] = why
    ratios = [name for name in schema.columns("speedup") if "speedup" in name or "efficien" in name]
    table.loc[lacking != "", [*ratios, "more_runs"]] = np.nan
    table.loc[lacking != "", ["verdict", "training_verdict", "scope"]] = ""
    told = UNLIKE + " " + lacking + ", which this cell cannot have"
    return schema.arrange("speedup", table.assign(note=table["note"].mask(lacking != "", told)))


def _lacking(cells: pd.DataFrame, costs: pd.DataFrame) -> list[str]:
    """Return the switches of each cell's baseline on one GPU that the cell itself ran without."""
    switches = costs.set_index(CELL_KEYS)["switches"].dropna()
    found = []
    for recipe, strategy, gpus, batch in cells[CELL_KEYS].itertuples(index=False):
        single = str(switches.get((recipe, "", 1, batch), ""))
        own = str(switches.get((recipe, strategy, gpus, batch), single)).split(", ")
        found.append(", ".join(name for name in single.split(", ") if name not in own))
    return found


class Timed(NamedTuple):
    """Two tables of a study."""

    timing: pd.DataFrame
    provenance: pd.DataFrame


def match(a: Timed, b: Timed, quantity: str = "epoch_seconds") -> pd.DataFrame:
    """Return two studies' times joined by cell, with columns a_… and b_…, the slowest b first.

    `ratio` is a's / b's, of runs of one machine and code, whose 95 % interval is `low` to `high`;
    the `verdict` is on b, and a `note` tells why there is no ratio. Cells without times are left
    out.
    """
    sides = {"a": a, "b": b}
    tables = [
        _sided(own.timing, side, ["status", "count", "samples", "unit"])
        for side, own in sides.items()
    ]
    table = tables[0].merge(tables[1], how="outer", on=CELL_KEYS)
    ran = pd.concat([own.provenance.assign(side=side) for side, own in sides.items()])
    noise = Noise(ran, quantity, [*CELL_KEYS, "side"])
    rows = {side: table[CELL_KEYS].assign(side=side) for side in sides}
    for side, own in rows.items():
        found = noise.times(own)
        names = [f"{side}_{quantity}{end}" for end in ("", "_low", "_high")]
        table[names] = found[["value", *ENDS]]
        table[f"{side}_runs"] = found["runs"]
    table = table.join(noise.ratios(rows["a"], rows["b"], factor(table, "a_", "b_")))
    known = {side: table[f"{side}_{quantity}"].notna() for side in sides}
    verdicts = {"only in A": ~known["b"], "only in B": ~known["a"], "no ratio": table["note"] != ""}
    table["verdict"] = np.select(list(verdicts.values()), list(verdicts), table["verdict"])
    table.loc[~(known["a"] & known["b"]), "note"] = ""
    absent = dict.fromkeys(["a_status", "b_status"], "not in the grid")
    table = table[known["a"] | known["b"]].fillna(absent)
    return table.sort_values("ratio", kind="stable", ignore_index=True)


def _sided(timing: pd.DataFrame, side: str, columns: list[str]) -> pd.DataFrame:
    return timing.set_index(CELL_KEYS)[columns].add_prefix(f"{side}_").reset_index()
