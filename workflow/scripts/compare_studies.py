"""Compare two studies cell by cell: A, the baseline, and B, the contender.

Each is the name of a study in studies/, or a results folder. Cells match by recipe, strategy, GPUs
and batch size per GPU; the page says how they are judged. With --fail-below MARK the exit status is
1 if the whole range of a cell's ratio is below MARK, or if B ran out of memory or time in a cell
that A has a time for. A cell that either study timed once has no range and never fails.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from scaling.claims.claim import label
from scaling.config import stored
from scaling.config.keys import EMPTY
from scaling.core import command_line, files, grid
from scaling.core import numbers as fmt
from scaling.core.errors import UserError
from scaling.report import page
from scaling.report.cells import download
from scaling.report.provenance import machine, run_facts
from scaling.report.quantities import define, named, span
from scaling.report.table import Column, View
from scaling.tables import ratios, schema
from scaling.tables.timing import provenance, read_runs, timing

STUDIES = Path("studies")


def _without_time(row: Any) -> str:
    """Return what the side without a time in this cell says of it; "" if both have one."""
    absent = row.a_status if pd.isna(row.a_epoch_seconds) else row.b_status
    return fmt.words(absent) if pd.isna(row.ratio) else ""


define(
    compared=Column("recipe, strategy", text="{0.recipe} {0.strategy}".format, name="recipe"),
    a_epoch_seconds=Column("A, s", fmt.significant, span("a_epoch_seconds")),
    b_epoch_seconds=Column("B, s", fmt.significant, span("b_epoch_seconds")),
    ratio=Column("A / B", fmt.times, span("ratio")),
    judged=Column("B is", name="verdict", detail=_without_time),
)
MATCHED = View(
    "matched",
    "Seconds per epoch of A and B",
    pd.DataFrame,
    named("compared gpus batch_size"),
    named("a_epoch_seconds b_epoch_seconds ratio judged"),
)
DIFFERENCES = View(
    "configuration", "Machine, versions and keys", pd.DataFrame, named("what"), named("A B")
)


@dataclass(frozen=True)
class Side:
    """One of the two studies: its times, facts in words, and keys of the configuration."""

    name: str
    times: pd.DataFrame
    facts: dict[str, str]
    settings: dict[str, str]


def read(name: str) -> Side:
    """Return a study by its name in studies/ or its results folder; UserError for others."""
    places = [STUDIES / name, Path(name)] if name else []
    folder = next((place for place in places if (place / stored.CONFIG).is_file()), None)
    if folder is None:
        there = sorted(path.parent.name for path in STUDIES.glob(f"*/{stored.CONFIG}"))
        raise UserError(
            f"{name!r} is no study, and no results folder with a {stored.CONFIG}: name one of "
            f"{', '.join(there)}"
        )
    try:
        config = stored.read(folder)
        runs = read_runs(grid.of(config), folder / "runs", partial=True)
        keys = pd.json_normalize(config | {"study": ""}).iloc[0]
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        path = folder / stored.CONFIG
        raise UserError(f"{path} is no configuration of a study ({error!r})") from error
    origin = provenance(runs)
    origin = origin[origin["status"] != "missing"].astype(object).fillna("")
    if origin.empty:
        raise UserError(f"{folder} has no record of a run, so no times to compare")
    facts = {
        "GPUs": machine(origin),
        **dict(run_facts(origin)),
        "Data": next(record["dataset"]["source"] for _, record in runs if record),
        "Measured": origin["started"].min()[:10],
    }
    settings = {str(key): str(value)[:80] for key, value in keys.items()}
    return Side(name, timing(runs), facts, settings)


def differences(a: Side, b: Side) -> pd.DataFrame:
    """Return what differs: facts, then keys, last those that no time of a cell depends on."""
    apart = {section for part, own in EMPTY.items() if part != "scaling" for section in own}
    keys = sorted(a.settings | b.settings, key=lambda key: key.partition(".")[0] in apart)
    known = pd.DataFrame([side.facts | side.settings for side in (a, b)], index=["A", "B"])
    found = known[[*a.facts, *keys]].fillna("not set").T.rename_axis("what").reset_index()
    return found[found["A"] != found["B"]]


def summary(found: pd.DataFrame) -> str:
    """Return `12 matched cells: 9 faster, 3 within noise, 2 only in A; median ratio 1.03×`."""
    counts, known = found["verdict"].value_counts(), found["ratio"].dropna()
    said = [f"{counts[name]} {name}" for name in ratios.VERDICTS if name in counts]
    head = f"{fmt.plural(len(known), 'matched cell')}: {', '.join(said)}"
    return f"{head}; median ratio {fmt.times(known.median())}"


def refusal(found: pd.DataFrame, mark: float) -> str:
    """Return a sentence on the cells that do not pass `mark`, with the worst; "" for none."""
    slow = ratios.too_slow(found, mark).sort_values("ratio", na_position="first")
    if slow.empty:
        return ""
    worst: Any = next(schema.rows_of(slow))
    said = worst.b_status if pd.isna(worst.ratio) else fmt.times(worst.ratio)
    cells = f"{fmt.plural(len(slow), 'cell')}, at worst in {label(worst)} ({said})"
    return f"B is clearly below {mark:g} of the speed of A in {cells}"


@command_line.script
def main(
    a: str, b: str, fail_below: float | None = None, output: Path = Path("results/compare")
) -> None:
    """Write the page and the table into the folder `output`, and print a summary."""
    sides = first, second = read(a), read(b)
    if first.times.equals(second.times):
        raise UserError(f"A ({a}) and B ({b}) have the same times in every cell: name two studies")
    found = ratios.match(first.times, second.times)
    if found["ratio"].isna().all():
        raise UserError(
            f"{a} and {b} have no cell (recipe, strategy, GPUs, batch size per GPU) with a time in "
            "both: nothing to compare"
        )
    name = "-".join(re.sub(r"[^\w.]+", "-", side).strip("-.") for side in (a, b))
    table, target = output / f"{name}.csv", output / f"{name}.html"
    files.write_text(table, schema.as_csv(found))
    refused = refusal(found, fail_below) if fail_below else ""
    html = page.render(
        page.REPORT / "compare.html.j2",
        sides=[("A, baseline", first), ("B, contender", second)],
        summary=summary(found),
        matched=MATCHED.make(found),
        differences=DIFFERENCES.make(differences(*sides)),
        unlike=found[["a_samples", "b_samples"]].dropna().nunique(axis=1).gt(1).any()
        or len({side.facts.get("Model", "").partition(" parameters")[0] for side in sides}) > 1,
        data=[download(table)],
        mark=fail_below,
        refusal=refused,
    )
    files.write_text(target, html)
    print(f"{b} against {a}: {summary(found)}\nThe page is {target.resolve().as_uri()}")
    if refused:
        raise UserError(refused)
