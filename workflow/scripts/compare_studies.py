"""Compare two studies by configuration: A is the baseline, B the contender.

A and B are names of studies in studies/, or results folders; `folder:recipe` selects one recipe.
Two recipes of one study are compared by pairs of runs. With `fail`, the exit status is 2 if a
configuration of B is slower than in A by more than `fail` and by more than noise. Otherwise it is 3
if a configuration cannot be judged (other machines, other work, or a single run), or if no
configuration is in both. Otherwise it is 0. Errors give 1.
"""

import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from scaling.claims.claim import label
from scaling.config import stored
from scaling.core import command_line, files, grid
from scaling.core import numbers as fmt
from scaling.core.errors import UserError, printable
from scaling.report.provenance import machine, run_facts
from scaling.tables import ratios, schema
from scaling.tables.noise import name_machines
from scaling.tables.timing import Run, provenance, read_runs, timing
from scaling.tables.work import settle

SLOWER, NOT_JUDGED = 2, 3
"""Exit statuses with `fail`: a configuration of B is slower; a configuration cannot be judged."""
UNTIMED = {"study", "parts", "convergence", "time_to_accuracy", "synchronization", "quantization"}
"""Configuration keys that do not affect times."""


def read(name: str) -> tuple[Path, str, list[Run], dict[str, Any], dict[str, str]]:
    """Return folder, selected recipe (or ""), runs, commands, and facts that can affect times."""
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
    """Return tables of times and provenance of `runs`. Unless "", `name` replaces their recipe."""
    times = settle(timing(runs), runs, commands)[0]
    tables = {"timing": times, "provenance": provenance(runs)}
    renamed = {"recipe": name} if name else {}
    return schema.StudyTables(name, {key: own.assign(**renamed) for key, own in tables.items()})


def limit_of(text: str) -> float:
    """Return the fraction that `2%` or `0.02` means; UserError for other texts, such as `2`."""
    number = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(%)|(0(?:\.\d+)?)", text.strip())
    if not number:
        raise UserError(f"FAIL is {text!r}: write how much slower is too slow, as 2%")
    return float(number[1]) / 100 if number[2] else float(number[3])


def decide(table: pd.DataFrame, limit: float) -> tuple[int, pd.DataFrame]:
    """Return the exit status, and `table` with the slowdown of B relative to A.

    `slower` is B's time / A's time − 1, with the 95 % interval `slower_low` to `slower_high`.
    `failed` is whether B is slower by more than `limit` and by more than noise.
    """
    ends = {"slower": "ratio", "slower_low": "high", "slower_high": "low"}
    rows = table.assign(**{name: 1 / table[end].astype(float) - 1 for name, end in ends.items()})
    rows["judged"] = rows["verdict"].isin(ratios.JUDGED)
    rows["failed"] = (rows["verdict"] == "slower") & (rows["slower"] > limit)
    common = rows[~rows["verdict"].str.startswith("only")]
    judged = len(common) and common["judged"].all()
    return SLOWER if rows["failed"].any() else 0 if judged else NOT_JUDGED, rows


def markdown(rows: pd.DataFrame) -> str:
    """Return a Markdown table with the verdict on each configuration."""
    lines = []
    for row in schema.rows_of(rows):
        sides = (row.a_epoch_seconds, row.a_status), (row.b_epoch_seconds, row.b_status)
        times = [status if pd.isna(time) else fmt.significant(time) for time, status in sides]
        side, bold = "slower" if row.slower > 0 else "faster", "**" * row.failed
        size = "" if pd.isna(row.slower) else f", {100 * abs(row.slower):.1f} % {side}"
        ratio = "" if pd.isna(row.ratio) else fmt.judged(row.ratio, row.low, row.high, "")
        found = "not judged" if row.verdict in ("", "no ratio") else row.verdict
        verdict = f"{bold}{found}{bold}{size}"
        lines.append([label(row), *times, ratio, verdict, row.scope or row.note])
    return _table("configuration, A (s), B (s), A / B, B is, on", lines)


def _table(heads: str, rows: Iterable[Iterable[str]]) -> str:
    names = heads.split(", ")
    lines = ([printable(" ".join(x.split())).replace("|", r"\|") for x in row] for row in rows)
    return "".join(f"| {' | '.join(line)} |\n" for line in (names, ["---"] * len(names), *lines))


def summary(found: pd.DataFrame) -> str:
    """Return `12 matched configurations: 9 faster, 3 unclear; median ratio 1.03×` (times A / B)."""
    counts, known = found["verdict"].value_counts(), found["ratio"].dropna()
    verdicts = [f"{counts[name]} {name}" for name in ratios.VERDICTS if name in counts]
    verdicts = verdicts or ["none judged"] * bool(len(known))
    ratio = f"; median ratio {fmt.times(known.median())}" if len(known) else ""
    return f"{fmt.plural(len(known), 'matched configuration')}: {', '.join(verdicts)}{ratio}"


@command_line.script
def main(a: str, b: str, fail: str = "", output: Path = Path("results/compare")) -> None:
    """Compare studies `a` and `b`: write Markdown and CSV files to `output`, and print the result.

    `fail` is the largest slowdown of `b` that is accepted, such as `2%`. If it is given, the
    verdicts are also written to gate.md and gate.json, and decide the exit status.
    """
    limit = limit_of(fail) if fail else 0.0
    folder, recipe, runs, commands, facts = read(a)
    other, other_recipe, other_runs, other_commands, other_facts = read(b)
    # A machine of both has one name.
    name_machines([record for _, record in [*runs, *other_runs] if record])
    name = f"{recipe} → {other_recipe}" if recipe and other_recipe else ""
    sides = timed(runs, commands, name), timed(other_runs, other_commands, name)
    found = ratios.match(*sides, pairs=folder == other)
    status, rows = decide(found, limit)
    title, text = f"{b} against {a}: {summary(found)}", markdown(rows)
    known = pd.DataFrame({"A": facts, "B": other_facts}).fillna("not set")
    known = known[known["A"] != known["B"]].reset_index()
    differing = _table("what can affect time, A, B", known.to_numpy(str).tolist())
    name = "-".join(re.sub(r"[^\w.]+", "-", side).strip("-.") for side in (a, b))
    files.write_text(output / f"{name}.md", f"{title}\n\n{text}\n{differing}")
    files.write_text(output / f"{name}.csv", schema.as_csv(found))
    print(f"{title}\n\n{text}\nThis, and what can affect time, is in {output / name}.md")
    if not fail:
        return
    values = rows.astype(object).where(rows.notna(), None).to_dict("records")
    document = {"a": a, "b": b, "limit": limit, "status": status, "rows": values}
    files.write_text(output / "gate.md", text)
    files.write_json(output / "gate.json", document)
    sys.exit(status)
