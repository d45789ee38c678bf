"""Whether one study, or recipe, is slower than another by more than is allowed."""

import math
import re
from typing import Any

import numpy as np
import pandas as pd

from scaling.core import numbers as fmt
from scaling.core.errors import UserError
from scaling.core.grid import CELL_KEYS
from scaling.core.statistics import difference
from scaling.tables.noise import Noise, machines, verdict
from scaling.tables.schema import rows_of
from scaling.tables.timing import TIMED, Run, epochs

SLOWER, NOT_JUDGED = 2, 3
"""Exit statuses; 0 is nothing slower, 1 an error."""
KEYS = CELL_KEYS[1:]
PLACE = [*KEYS, "seed", "repeat"]
OTHER_WORK = "other work: the samples of an epoch differ"


def limit_of(text: str) -> float:
    """Return the fraction that `2%` or `0.02` is; UserError for another text."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(%?)", text.strip())
    if not found:
        raise UserError(f"FAIL is {text!r}: write how much slower is too slow, as 2%")
    return float(found[1]) / (100 if found[2] else 1)


def judge(
    a: list[Run], b: list[Run], *, limit: float, paired: bool = False, renamed: bool = False
) -> pd.DataFrame:
    """Return a row for each configuration of both: how much `slower` B is, and its `verdict`.

    `slower` is a fraction, with `low` and `high` its 95 % interval; it is of seconds, of a command
    whose samples are known of seconds a sample. Runs of one study are `paired`: those of a seed and
    repeat. `failed` is whether B is slower by more than `limit` and noise; `judged` whether that
    can be said, else the `note` tells why not. Where `renamed`, A and B are a recipe each.
    """
    runs = pd.concat([_values(a, "a"), _values(b, "b")], ignore_index=True)
    if renamed:
        names = runs.groupby("side", sort=False)["recipe"].first()
        runs["match"] = " → ".join(names)
    runs["machine"] = machines(runs.pop("environment").tolist())
    model = Noise(runs, "value", ["side", *CELL_KEYS])
    rows = []
    for key, cell in runs.groupby(["match", *KEYS], sort=False):
        sides = [cell[cell["side"] == side] for side in "ab"]
        if any(side.empty for side in sides):
            continue
        row: dict[str, Any] = dict(zip(["recipe", *KEYS], key, strict=True))
        if len({*cell["samples"]}) > 1:
            found = {"note": OTHER_WORK}
        elif paired:
            found = _of_pairs(*sides)
        else:
            found = _of_model(model, *(side.head(1) for side in sides))
        rows.append(row | found)
    columns = ["recipe", *KEYS, "slower", "low", "high", "verdict", "scope", "note"]
    rows = [dict.fromkeys(["verdict", "scope", "note"], "") | row for row in rows]
    table = pd.DataFrame(rows, columns=columns)
    table["judged"] = table["verdict"] != ""
    failed = (table["verdict"] == "slower") & (table["slower"].astype(float) > limit)
    return table.assign(failed=failed)


def _values(runs: list[Run], side: str) -> pd.DataFrame:
    """Return a row for each timed run: its place, its seconds an epoch or a sample, its code."""
    rows = []
    for cell, record in runs:
        if not record or record["status"] not in TIMED:
            continue
        measured = epochs([record], "measured")
        samples = measured["samples"].median()
        per_sample = record["training"]["engine"] == "command" and samples > 0
        surroundings = record["environment"]
        rows.append(
            vars(cell)
            | {"side": side, "match": cell.recipe, "environment": surroundings}
            | {"code": surroundings.get("code_digest") or str(surroundings.get("commit"))}
            | {"value": measured["seconds"].median() / (samples if per_sample else 1)}
            | {"samples": 0 if per_sample else samples}
        )
    columns = [*CELL_KEYS, "seed", "repeat", "side", "match", "environment", "code", "value"]
    return pd.DataFrame(rows, columns=[*columns, "samples"])


def _of_pairs(a: pd.DataFrame, b: pd.DataFrame) -> dict[str, Any]:
    """Return the judgement on the pairs of runs of one seed and repeat."""
    both = a.merge(b, on=PLACE, suffixes=("_a", "_b"))
    logs = np.log(both["value_a"] / both["value_b"]).tolist()
    if not logs:
        return {"note": "no run of the one has the seed and repeat of the other"}
    there = {*a["machine"], *b["machine"]}
    found = difference(logs)
    error = float(np.std(logs, ddof=1)) / math.sqrt(len(logs)) if len(logs) > 1 else math.nan
    said, _ = verdict(found.mean, error, len(logs) - 1, len(logs))
    ends = {"slower": found.mean, "low": found.high, "high": found.low}
    slower = {name: math.expm1(-end) for name, end in ends.items()}
    place = "one machine" if len(there) == 1 else fmt.plural(len(there), "machine")
    note = "" if said else "one pair of runs has no interval: set grid.repeats"
    return (
        slower
        | {"verdict": said, "note": note}
        | {"scope": f"{fmt.plural(len(logs), 'pair')}, {place}"}
    )


def _of_model(model: Noise, a: pd.DataFrame, b: pd.DataFrame) -> dict[str, Any]:
    """Return the judgement by the model of noise."""
    found = model.ratios(a, b.set_axis(a.index)).iloc[0]
    if pd.isna(found["ratio"]):
        return {"note": found["note"]}
    ends = {"slower": "ratio", "low": "high", "high": "low"}
    note = "" if found["verdict"] else "one run has no interval: set grid.repeats"
    return {name: 1 / found[end] - 1 for name, end in ends.items()} | {
        "verdict": found["verdict"],
        "scope": found["scope"],
        "note": note,
    }


def status(table: pd.DataFrame) -> int:
    """Return the exit status of a judgement."""
    if table["failed"].any():
        return SLOWER
    return 0 if len(table) and table["judged"].all() else NOT_JUDGED


def markdown(table: pd.DataFrame) -> str:
    """Return a line for each configuration, for a pull request."""
    lines = ["| configuration | B is | 95 % | on |", "|---|---|---|---|"]
    for row in rows_of(table):
        where = "/".join(filter(None, [row.recipe, row.strategy if row.gpus > 1 else ""]))
        name = f"{where}, {fmt.gpus(row.gpus)}, b = {row.batch_size}"
        side = "slower" if row.slower > 0 else "faster"
        by = f"{'**' * row.failed}{row.verdict or 'not judged'}{'**' * row.failed}"
        size = "" if pd.isna(row.slower) else f", {100 * abs(row.slower):.1f} % {side}"
        ends = "" if pd.isna(row.low) else f"{100 * row.low:.1f} to {100 * row.high:.1f} %"
        lines.append(f"| {name} | {by}{size} | {ends} | {row.scope or row.note} |")
    return "\n".join(lines) + "\n"
