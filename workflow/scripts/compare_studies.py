"""Compare two studies cell by cell: A, the baseline, and B, the contender.

Each is the name of a study in studies/, or a results folder. Cells match by recipe, strategy, GPUs
and batch size per GPU; the page says how they are judged, and what may explain a difference.
"""

import re
from itertools import chain
from operator import attrgetter
from pathlib import Path

import pandas as pd

from scaling.config import stored
from scaling.config.keys import EMPTY
from scaling.core import command_line, files, grid
from scaling.core import numbers as fmt
from scaling.core.errors import UserError
from scaling.report import page
from scaling.report.provenance import machine, run_facts
from scaling.report.quantities import define, interval, named
from scaling.report.table import Column, View
from scaling.tables import ratios, schema
from scaling.tables.noise import name_machines
from scaling.tables.timing import Run, provenance, read_runs, timing
from scaling.tables.work import commands, settle

UNTIMED = {"study", *chain(*(own for part, own in EMPTY.items() if part != "scaling"))}
"""Keys of the configuration that no time of a cell depends on."""

define(
    compared=Column("recipe, strategy", text="{0.recipe} {0.strategy}".format, name="recipe"),
    a_epoch_seconds=Column("A, s", fmt.significant, interval("a_epoch_seconds", scope="")),
    b_epoch_seconds=Column("B, s", fmt.significant, interval("b_epoch_seconds", scope="")),
    ratio=Column(
        "A / B",
        text=lambda row: fmt.judged(row.ratio, row.low, row.high, row.scope),
    ),
    judged=Column("B is", name="verdict", detail=attrgetter("note")),
)
TABLES = [
    View(
        "cells",
        "Seconds per epoch of A and B",
        # A cell without a time says why.
        lambda found, _: found.assign(
            status=found["a_status"].mask(found["a_status"] == "ok", found["b_status"])
        ),
        named("compared gpus batch_size"),
        named("a_epoch_seconds b_epoch_seconds ratio judged"),
    ),
    View("apart", "What can affect time", lambda _, facts: facts, named("what"), named("A B")),
]


def read(name: str) -> tuple[list[Run], dict[str, str]]:
    """Return the times of a study and, in words, what can affect them; UserError for no study."""
    there = (Path(name) / stored.CONFIG).is_file()
    folder = Path(name) if there else stored.find(Path("studies"), name)
    try:
        config = stored.read(folder)
        runs = read_runs(grid.of(config), folder / "runs", partial=True)
        keys = pd.json_normalize({key: config[key] for key in config if key not in UNTIMED}).iloc[0]
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        path = folder / stored.CONFIG
        raise UserError(f"{path} is no configuration of a study ({error!r})") from error
    origin = provenance(runs).query("status != 'missing'").astype(object).fillna("")
    if origin.empty:
        raise UserError(f"{folder} has no record of a run, so no times to compare")
    facts = {
        "GPUs": machine(origin),
        **dict(run_facts(origin)),
        "Data": next(record["dataset"]["source"] for _, record in runs if record),
        "Measured": origin["started"].min()[:10],
    }
    return runs, facts | {str(key): str(value)[:80] for key, value in keys.items()}


def summary(found: pd.DataFrame, models: set[str]) -> str:
    """Return `12 matched cells: 9 faster, 3 unclear, 2 only in A; median ratio 1.03×`.

    It says so where the work of an epoch differs.
    """
    samples = found[["a_samples", "b_samples"]].dropna()
    unlike = len(models) > 1 or (samples["a_samples"] != samples["b_samples"]).any()
    counts, known = found["verdict"].value_counts(), found["ratio"].dropna()
    verdicts = [f"{counts[name]} {name}" for name in ratios.VERDICTS if name in counts]
    head = f"{fmt.plural(len(known), 'matched cell')}: {', '.join(verdicts)}"
    work = "; models or numbers of images differ, so times are of different work" if unlike else ""
    return f"{head}; median ratio {fmt.times(known.median())}{work}"


@command_line.script
def main(a: str, b: str, output: Path = Path("results/compare")) -> None:
    """Write the page and the table into the folder `output`, and print a summary."""
    (runs, facts), (other_runs, other_facts) = read(a), read(b)
    # A machine of both has one name.
    name_machines([record for _, record in [*runs, *other_runs] if record])
    first, second = (
        ratios.Timed(settle(timing(own), own, commands(own))[0], provenance(own))
        for own in (runs, other_runs)
    )
    found = ratios.match(first, second)
    known = pd.DataFrame({"A": facts, "B": other_facts}).fillna("not set")
    known = known[known["A"] != known["B"]].rename_axis("what").reset_index()
    name = "-".join(re.sub(r"[^\w.]+", "-", side).strip("-.") for side in (a, b))
    models = {one.get("Model", "").partition(" parameters")[0] for one in (facts, other_facts)}
    title, line = f"{b} against {a}", summary(found, models)
    contents = {
        "title": title,
        "summary": line,
        "tables": [one.make(found, known) for one in TABLES],
    }
    target = output / f"{name}.html"
    files.write_text(target, page.render(page.REPORT / "compare.html.j2", **contents))
    files.write_text(output / f"{name}.csv", schema.as_csv(found))
    print(f"{title}: {line}\nThe page is {target.resolve().as_uri()}")
