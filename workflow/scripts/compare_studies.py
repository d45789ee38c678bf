"""Compare two studies by configuration: A is the baseline, B the contender.

A and B are names of studies in studies/, or results folders; `folder:recipe` selects one recipe.
Two recipes of one study are compared by pairs of runs. With `fail`, the exit status is 0 if no
configuration of B is slower; 1 for an error; 2 if one is slower by more than `fail` and by more
than noise; 3 if one cannot be judged (other machines, other work, or a single run), or if A and B
share no configuration.
"""

import re
import sys
from operator import attrgetter
from pathlib import Path
from typing import Any

import pandas as pd

from scaling.claims.claim import label
from scaling.config import stored
from scaling.core import command_line, files, grid
from scaling.core import numbers as fmt
from scaling.core.errors import UserError
from scaling.report import page
from scaling.report.provenance import machine, run_facts
from scaling.report.quantities import define
from scaling.report.table import Column, View
from scaling.tables import ratios, schema
from scaling.tables.noise import name_machines
from scaling.tables.timing import Run, provenance, read_runs, timing
from scaling.tables.work import settle

SLOWER, NOT_JUDGED = 2, 3
"""Exit statuses with `fail`: a configuration is slower, or cannot be judged."""
UNTIMED = {"study", "parts", "convergence", "time_to_accuracy", "synchronization", "quantization"}
"""Configuration keys that do not affect times."""

define(
    compared=Column("recipe, strategy", text="{0.recipe} {0.strategy}".format, name="recipe"),
    a_epoch_seconds=Column("A, s", fmt.significant),
    b_epoch_seconds=Column("B, s", fmt.significant),
    ratio=Column("A / B", text=lambda row: fmt.judged(row.ratio, row.low, row.high, row.scope)),
    judged=Column("B is", name="verdict", detail=attrgetter("note")),
)
TABLES = [
    View(
        "cells",
        "Seconds per epoch of A and B",
        "compared gpus batch_size",
        "a_epoch_seconds b_epoch_seconds ratio judged",
        # A configuration without a time says why.
        lambda found, _: found.assign(
            status=found["a_status"].mask(found["a_status"] == "ok", found["b_status"])
        ),
    ),
    View("apart", "What can affect time", "what", "A B", lambda _, facts: facts),
]


def read(name: str) -> tuple[Path, str, list[Run], dict[str, Any], dict[str, str]]:
    """Return a study's folder, recipe ("" for all), runs, commands, and facts that affect times."""
    place, _, recipe = name.partition(":")
    there = (Path(place) / stored.CONFIG).is_file()
    folder = Path(place) if there else stored.find(Path("studies"), place)
    try:
        config = stored.read(folder)
        runs = read_runs(grid.of(config), folder / "runs")
        keys = pd.json_normalize({key: config[key] for key in config if key not in UNTIMED}).iloc[0]
        commands = {key: own for key, own in config["recipes"].items() if "command" in own}
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        path = folder / stored.CONFIG
        raise UserError(f"{path}: invalid configuration file ({error!r})") from error
    runs = [run for run in runs if recipe in ("", run[0].recipe)]
    origin = provenance(runs).query("status != 'missing'").astype(object).fillna("")
    if origin.empty:
        of = f" of recipe {recipe}" if recipe else ""
        raise UserError(f"{folder} has no record of a run{of}, so no times to compare")
    facts = {
        "GPUs": machine(origin),
        **run_facts(origin),
        "Data": next(record["dataset"]["source"] for _, record in runs if record),
        "Measured": origin["started"].min()[:10],
    }
    facts |= {str(key): str(value)[:80] for key, value in keys.items()}
    return folder, recipe, runs, commands, facts


def timed(runs: list[Run], commands: dict[str, Any], name: str = "") -> schema.StudyTables:
    """Return tables of times and provenance of `runs`. If not "", `name` is their new recipe."""
    times = settle(timing(runs), runs, commands)[0]
    tables = {"timing": times, "provenance": provenance(runs)}
    renamed = {"recipe": name} if name else {}
    return schema.StudyTables(name, {key: own.assign(**renamed) for key, own in tables.items()})


def limit_of(text: str) -> float:
    """Return the fraction that `2%` or `0.02` means; UserError for any other text."""
    number = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(%?)", text.strip())
    if not number:
        raise UserError(f"FAIL is {text!r}: write how much slower is too slow, as 2%")
    return float(number[1]) / (100 if number[2] else 1)


def decide(table: pd.DataFrame, limit: float) -> tuple[int, pd.DataFrame]:
    """Return the exit status, and a table of the configurations that both studies measured.

    Column `slower` is the fraction by which B is slower, with the 95 % interval `slower_low` to
    `slower_high`; `failed` is whether B is slower by more than `limit` and by more than noise.
    """
    both = table[~table["verdict"].isin(["only in A", "only in B"])].reset_index(drop=True)
    ends = {"slower": "ratio", "slower_low": "high", "slower_high": "low"}
    both = both.assign(**{name: 1 / both[end].astype(float) - 1 for name, end in ends.items()})
    both["judged"] = ~both["verdict"].isin(["", "no ratio"])
    both["failed"] = (both["verdict"] == "slower") & (both["slower"] > limit)
    if both["failed"].any():
        return SLOWER, both
    return (0 if len(both) and both["judged"].all() else NOT_JUDGED), both


def markdown(rows: pd.DataFrame) -> str:
    """Return a Markdown table for a pull request, with one verdict per configuration."""
    lines = ["| configuration | B is | 95 % | on |", "|---|---|---|---|"]
    for row in schema.rows_of(rows):
        side, bold = "slower" if row.slower > 0 else "faster", "**" * row.failed
        by = f"{bold}{row.verdict if row.judged else 'not judged'}{bold}"
        size = "" if pd.isna(row.slower) else f", {100 * abs(row.slower):.1f} % {side}"
        ends = f"{100 * row.slower_low:.1f} to {100 * row.slower_high:.1f} %"
        span = "" if pd.isna(row.low) else ends
        lines.append(f"| {label(row)} | {by}{size} | {span} | {row.scope or row.note} |")
    return "\n".join(lines) + "\n"


def summary(found: pd.DataFrame) -> str:
    """Return one line: `12 matched configurations: 9 faster, 3 unclear; median ratio 1.03×`."""
    counts, known = found["verdict"].value_counts(), found["ratio"].dropna()
    verdicts = [f"{counts[name]} {name}" for name in ratios.VERDICTS if name in counts]
    ratio = f"; median ratio {fmt.times(known.median())}" if len(known) else ""
    return f"{fmt.plural(len(known), 'matched configuration')}: {', '.join(verdicts)}{ratio}"


@command_line.script
def main(a: str, b: str, fail: str = "", output: Path = Path("results/compare")) -> None:
    """Compare studies `a` and `b`: write a page and a table into `output`, and print a summary.

    With `fail`, the largest slowdown that passes (`2%`), also print a line of Markdown for each
    configuration, and write the verdicts to gate.md and gate.json.
    """
    limit = limit_of(fail) if fail else 0.0
    folder, recipe, runs, commands, facts = read(a)
    other, other_recipe, other_runs, other_commands, other_facts = read(b)
    # A machine of both has one name.
    name_machines([record for _, record in [*runs, *other_runs] if record])
    name = f"{recipe} → {other_recipe}" if recipe and other_recipe else ""
    sides = timed(runs, commands, name), timed(other_runs, other_commands, name)
    found = ratios.match(*sides, pairs=folder == other)
    known = pd.DataFrame({"A": facts, "B": other_facts}).fillna("not set")
    known = known[known["A"] != known["B"]].rename_axis("what").reset_index()
    name = "-".join(re.sub(r"[^\w.]+", "-", side).strip("-.") for side in (a, b))
    title, line, target = f"{b} against {a}", summary(found), output / f"{name}.html"
    contents = {
        "title": title,
        "summary": line,
        "tables": [one.make(found, known) for one in TABLES],
    }
    files.write_text(target, page.render(page.REPORT / "compare.html.j2", **contents))
    files.write_text(output / f"{name}.csv", schema.as_csv(found))
    print(f"{title}: {line}\nThe page is {target.resolve().as_uri()}")
    if not fail:
        return
    status, rows = decide(found, limit)
    text, values = markdown(rows), rows.astype(object).where(rows.notna(), None)
    files.write_text(output / "gate.md", text)
    document = {"a": a, "b": b, "limit": limit, "status": status}
    files.write_json(output / "gate.json", document | {"rows": values.to_dict("records")})
    print(text, end="")
    sys.exit(status)
