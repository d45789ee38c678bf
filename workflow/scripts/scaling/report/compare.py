"""Compare two studies: which cells are faster, by how much, and what else differs."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from scaling.claims.claim import label
from scaling.config import stored
from scaling.config.keys import EMPTY
from scaling.core import grid
from scaling.core import numbers as fmt
from scaling.core.errors import UserError
from scaling.core.grid import CELL_KEYS
from scaling.core.numbers import significant, times
from scaling.report.provenance import machine, run_facts
from scaling.report.quantities import PARTS, define, span, view
from scaling.report.table import Column, tables
from scaling.tables import ratios, schema
from scaling.tables.timing import TIMED, provenance, read_runs, timing

STUDIES = Path("studies")
BOTH = ("timing", "provenance")
CELL = "compared gpus batch_size"

define(
    compared=Column(
        "configuration",
        name="recipe",
        text=lambda row: " · ".join(filter(None, [row.recipe, row.strategy])),
    ),
    a_epoch_seconds=Column("A, s", significant, span("a_epoch_seconds")),
    b_epoch_seconds=Column("B, s", significant, span("b_epoch_seconds")),
    ratio=Column("A / B", times, span("ratio")),
    judged=Column("B is", name="verdict"),
    a=Column("A"),
    b=Column("B"),
)


@dataclass(frozen=True)
class Side:
    """One of the two studies: its times, facts in words, and keys of the configuration."""

    name: str
    times: pd.DataFrame
    facts: dict[str, str]
    settings: dict[str, str]


def read(name: str) -> Side:
    """Return a study by its name in studies/ or by its results folder, from its records or tables.

    Raises UserError for anything else, and lists the names.
    """
    places = [STUDIES / name, Path(name)] if name else []
    folder = next((place for place in places if (place / stored.CONFIG).is_file()), None)
    if folder is None:
        there = sorted(path.parent.name for path in STUDIES.glob(f"*/{stored.CONFIG}"))
        raise UserError(
            f"{name!r} is no study, and no results folder with a {stored.CONFIG}: name one of "
            f"{', '.join(there)}"
        )
    path = folder / stored.CONFIG
    try:
        config = stored.read(folder)
        cells, data, study = grid.of(config), config["dataset"], config["study"]
        keys = pd.json_normalize(config | {"study": ""}).iloc[0]
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise UserError(f"{path} is no configuration of a study ({error!r})") from error
    runs = read_runs(cells, folder / "runs", partial=True)
    if recorded := [record for _, record in runs if record]:
        seconds, origin = timing(runs), provenance(runs)
        data = data | recorded[0]["dataset"]
    elif (folder / "tables").is_dir():
        paths = [schema.TABLES[name].path(folder / "tables", study) for name in BOTH]
        seconds, origin = map(schema.read, BOTH, paths)
    else:
        raise UserError(f"{folder} has no record of a run and no tables, so no times to compare")
    origin = origin[origin["status"] != "missing"].astype(object).fillna("")
    facts = {
        "GPUs": machine(origin),
        **dict(run_facts(origin)),
        "Data": f"{data['source']}, {data['train_images']:,} train images",
        "Measured": origin["started"].min()[:10],
        "Noise": _noise(seconds["count"].dropna(), origin[origin["status"].isin(TIMED)]),
    }
    return Side(name, seconds, facts, {str(key): str(value)[:80] for key, value in keys.items()})


def _noise(epochs: pd.Series, timed: pd.DataFrame) -> str:
    if not epochs.max() > 1:
        return "unknown, as each time was measured once"
    runs = timed.groupby(CELL_KEYS).size().max()
    of = f"{runs} runs" if runs > 1 else "one run: what differs between runs is not in it"
    return f"range over {fmt.whole_span(epochs)} epochs of a cell, from {of}"


def cells(a: Side, b: Side) -> pd.DataFrame:
    """Return the matched cells, see `ratios.match`; UserError if none has a time in both."""
    found = ratios.match(a.times, b.times)
    if found["ratio"].isna().all():
        raise UserError(
            f"{a.name} and {b.name} have no cell (recipe, strategy, GPUs, batch size per GPU) with "
            "a time in both: nothing to compare"
        )
    return found


@view(
    "compare", "Seconds per epoch of A and B", CELL, "a_epoch_seconds b_epoch_seconds ratio judged"
)
def matched(found: pd.DataFrame, *_: Side) -> pd.DataFrame:
    return found[found["ratio"].notna()]


@view("compare", "Cells with a time in one only", CELL, "a b")
def alone_cells(found: pd.DataFrame, *_: Side) -> pd.DataFrame:
    """Return the cells without a ratio, with the seconds of a side as text, or its status."""
    alone = found[found["ratio"].isna()]
    for side in ("a", "b"):
        seconds, status = alone[f"{side}_epoch_seconds"], alone[f"{side}_status"]
        alone = alone.assign(**{side: seconds.map(significant).where(seconds.notna(), status)})
    return alone


@view("compare", "Machine, versions and keys of the configuration", "what", "a b")
def configuration(_: pd.DataFrame, a: Side, b: Side) -> pd.DataFrame:
    """Return what differs: facts that both have, then configuration keys of either.

    Keys of other parts than scaling, which no time of a cell depends on, are last.
    """
    both = [(what, a.facts[what], b.facts[what]) for what in a.facts if what in b.facts]
    apart = {section for part, own in EMPTY.items() if part != "scaling" for section in own}
    keys = dict.fromkeys([*a.settings, *b.settings])
    for key in sorted(keys, key=lambda key: key.partition(".")[0] in apart):
        both.append((key, a.settings.get(key, "not set"), b.settings.get(key, "not set")))
    return pd.DataFrame([row for row in both if row[1] != row[2]], columns=["what", "a", "b"])


def values(a: Side, b: Side, found: pd.DataFrame) -> dict[str, Any]:
    """Return the values that the page's template uses."""
    alike = matched.rows(found)
    sizes = [re.findall(r"[\d,]+(?= parameters)", side.facts.get("Model", "")) for side in (a, b)]
    images = (alike["a_samples"] != alike["b_samples"]).any()
    return {
        "sides": [("A, baseline", a), ("B, contender", b)],
        "summary": summary(found),
        "tables": {table.name: table for table in tables(PARTS["compare"], found, a, b)},
        "unlike": bool(images) or (all(sizes) and sizes[0] != sizes[1]),
    }


def summary(found: pd.DataFrame) -> str:
    """Return `12 matched cells: 9 faster, 3 within noise, 2 only in A; median ratio 1.03×`."""
    counts, known = found["verdict"].value_counts(), found["ratio"].dropna()
    said = [f"{counts[name]} {name}" for name in ratios.VERDICTS if name in counts]
    head = f"{fmt.plural(len(known), 'matched cell')}: {', '.join(said)}"
    return f"{head}; median ratio {fmt.times(known.median())}"


def refusal(found: pd.DataFrame, mark: float) -> str:
    """Return a sentence on the cells that do not pass `mark`, worst first; "" for none."""
    slow = ratios.too_slow(found, mark).sort_values("ratio", na_position="first")
    named = [
        f"{label(row)} ({row.b_status if pd.isna(row.ratio) else fmt.times(row.ratio)})"
        for row in schema.rows_of(slow)
    ]
    more = f" and {len(named) - 3} more" if len(named) > 3 else ""
    said = f"B is clearly below {mark:g} of the speed of A in {'; '.join(named[:3])}{more}"
    return said if named else ""
