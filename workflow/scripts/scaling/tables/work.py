"""Count the samples per epoch of a user's command, and warn about doubtful runs."""

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from scaling.core import numbers as fmt
from scaling.core.grid import CELL_KEYS
from scaling.tables.timing import Run

IMPORTS_SECONDS = 2.0
"""Time that importing PyTorch takes at least."""
ALIKE = 0.02
"""Two numbers of samples count as equal if they differ by at most this fraction."""
WHOLE = "no epoch was printed: the whole run counts as one, start-up included"
PRINTED = ["iterations", "samples"]
"""Columns that are known only if the command printed them."""
Findings = list[dict[str, Any]]


def settle(
    timing: pd.DataFrame, runs: list[Run], recipes: Mapping[str, Mapping[str, Any]]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return `timing` with samples and their units for users' commands, and all warnings.

    `recipes` has the options of recipes that are commands. Samples are per epoch, of all ranks. If
    the recipe's key `samples` is `rank`, the printed number is multiplied by N (number of GPUs). If
    the key is missing, it is multiplied if N GPUs print 1/N of the number that one GPU prints (less
    at most one global batch, dropped by ranks). Numbers that were not printed are NaN.
    """
    of_recipes = {name: one["unit"] for name, one in recipes.items()}
    units = timing["recipe"].map(of_recipes).astype(object)
    table, counts = timing.assign(unit=units.fillna(""), whole=False), timing[PRINTED]
    table[PRINTED] = counts.mask(counts.eq(0).mul(units.notna(), axis=0))
    findings = Findings()
    recipe: Any
    for recipe, rows in table[units.notna()].groupby("recipe", sort=False):
        one = rows[rows["gpus"] == 1].set_index("batch_size")[["samples", "epoch_seconds"]]
        base, scope = rows[["batch_size"]].join(one, on="batch_size"), recipes[recipe]["samples"]
        shares = (rows["samples"] * rows["gpus"] / base["samples"])[rows["gpus"] > 1].dropna()
        # Ranks may drop their last batches, at most one global batch together.
        several = rows.loc[shares.index]
        dropped = several["gpus"] * several["batch_size"] / base.loc[shares.index, "samples"]
        least = 1 - dropped.clip(lower=ALIKE)
        alike = shares.between(least.clip(lower=0.5), 1 + ALIKE)
        of_rank = scope is None and len(shares) > 0 and bool(alike.mean() > 0.5)
        if of_rank or scope == "rank":
            table.loc[rows.index, "samples"] *= rows["gpus"]
        place: Any
        for place, row in rows.iterrows():
            same = row[["recipe", "gpus", "batch_size"]].to_dict().items()
            records = [one for _, one in runs if one and same <= one["cell"].items()]
            lines = [one["training"].get("epoch_lines", 1) for one in records]
            table.loc[place, "whole"] = whole = bool(lines) and not any(lines)
            texts = (one["message"] or "" for one in records)
            messages = [text for text in texts if "were not read" in text]
            if whole and row["status"] == "ok":
                short = ", and it is shorter than imports take: did it train?"
                messages.insert(0, WHOLE + short * bool(row["epoch_seconds"] < IMPORTS_SECONDS))
            if any(one["training"].get("step_seconds") for one in records):
                messages += _doubts(table.loc[place])
            if row["gpus"] > 1 and scope != "rank":
                messages += _asks(row, base.loc[place], of_rank, scope)
            findings += [dict(row[CELL_KEYS]) | {"message": message} for message in messages]
    return table, pd.DataFrame(findings + _shared_files(runs))


def factor(table: pd.DataFrame, one: str, other: str) -> Any:
    """Return each row's samples per epoch of `other` / samples per epoch of `one`.

    `one`, `other`: prefixes of columns, such as `a_`. Without printed samples, the ratio is 1.
    """
    ratio = table[f"{other}samples"].astype(float) / table[f"{one}samples"].astype(float)
    return ratio.where((table[f"{other}unit"].astype(object).fillna("") != "") & ratio.notna(), 1.0)


def _doubts(row: Any) -> Iterator[str]:
    """Yield a question if the counted steps of `row` train on more samples than were printed."""
    batch, samples = row["gpus"] * row["batch_size"], row["samples"]
    trained, allowed = row["iterations"] * batch, samples + max(batch, ALIKE * samples)
    if row["unit"] == "samples" and trained > allowed:
        yield (
            f"{row['iterations']:,.0f} steps of {batch:,} samples are more than the "
            f"{samples:,.0f} printed: does each GPU train on {{batch_size}} samples, and "
            "are the printed samples those of all ranks (key samples)?"
        )


def _asks(row: Any, base: Any, of_rank: bool, scope: str | None) -> Iterator[str]:
    """Yield a warning if samples or times of `row` (N GPUs) do not fit those of `base` (1 GPU).

    `of_rank`: whether samples are taken for one rank's. `scope`: the recipe's key `samples`.
    """
    on, more = fmt.gpus(row["gpus"]), row["samples"] / base["samples"]
    unit, one = row["unit"], f"{base['samples']:,.0f} on 1 GPU"
    numbers = f"{row['samples']:,.0f} {unit} an epoch on {on} and {one}"
    if pd.isna(more):
        return
    if of_rank:
        yield (
            f"{numbers} were printed, so those on {on} are taken for one process's: say which by "
            "the recipe's key samples, rank or all"
        )
    elif abs(more - 1) > ALIKE:
        yield f"{numbers}: the speedup is that of throughput, not of an epoch's seconds"
    elif scope is None and 0.8 < row["epoch_seconds"] / base["epoch_seconds"] < 1.25:
        yield (
            f"{on} take as long as 1 GPU for as many {unit}: if each process trains so many, "
            "set the recipe's key samples to rank, otherwise to all; if the script divides its "
            "batch among the GPUs, pass it {global_batch_size}"
        )


def _shared_files(runs: list[Run]) -> Findings:
    """Return a warning for each run that read or wrote files of an earlier run."""
    done = [record for _, record in runs if record and "written" in record["training"]]
    findings, written = Findings(), set[str]()
    for record in sorted(done, key=lambda one: one["environment"]["started"]):
        made = {*record["training"]["written"]}
        if again := written & {*record["training"].get("read", []), *made}:
            message = (
                f"it used files that an earlier run wrote ({', '.join(sorted(again)[:3])}): it may "
                "have gone on from its checkpoint; write to {folder}"
            )
            cell = {key: record["cell"][key] for key in CELL_KEYS}
            findings.append(cell | {"message": message})
        written |= made
    return findings
