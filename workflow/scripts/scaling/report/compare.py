"""Compare two studies: which cells are faster, by how much, and what else differs."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from scaling.claims.phrases import label
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
from scaling.tables import comparison, schema
from scaling.tables.runs import provenance, read_runs
from scaling.tables.timing import TIMED, timing

STUDIES = Path("studies")
FACTS_NOT_ON_CARDS = ["Training", "Recipe options", "Units"]
"""Facts that are shown only where they differ, and not on the cards."""


def _configuration(row: Any) -> str:
    return " · ".join(filter(None, [row.recipe, row.strategy]))


define(
    compared=Column("configuration", name="recipe", text=_configuration),
    a_epoch_seconds=Column("A, s", significant, span("a_epoch_seconds")),
    b_epoch_seconds=Column("B, s", significant, span("b_epoch_seconds")),
    ratio=Column("A / B", times, span("ratio")),
    judged=Column("B is", name="verdict"),
    a=Column("A"),
    b=Column("B"),
)
CELL = "compared gpus batch_size"


@dataclass(frozen=True)
class Side:
    """One of the two studies: times, facts in words, configuration keys, runs of a cell.

    A published study has no configuration, and its cells have no recipe.
    """

    name: str
    times: pd.DataFrame
    facts: dict[str, str]
    settings: dict[str, str]
    runs: int = 0

    @property
    def card(self) -> list[tuple[str, str]]:
        """Return the facts of its card, and the basis of its noise."""
        epochs = self.times["count"].dropna()
        noise = "unknown, as each time was measured once"
        if epochs.max() > 1:
            noise = f"range over {fmt.whole_span(epochs)} epochs of a cell, from "
            one = "one run: what differs between runs is not in it"
            noise += f"{self.runs} runs" if self.runs > 1 else one
        return [
            *(fact for fact in self.facts.items() if fact[0] not in FACTS_NOT_ON_CARDS),
            ("Noise", noise),
        ]


def read(name: str, printed: Callable[[], Mapping[str, Side]] = dict) -> Side:
    """Return a study by its name in studies/ or among the `printed`, or by its results folder.

    Raises UserError for anything else, and lists the names.
    """
    for folder in (STUDIES / name, Path(name)) if name else ():
        if (folder / stored.CONFIG).is_file():
            return _measured(name, folder)
    known = printed()
    if name in known:
        return known[name]
    there = sorted(path.parent.name for path in STUDIES.glob(f"*/{stored.CONFIG}"))
    raise UserError(
        f"{name!r} is no study, and no results folder with a {stored.CONFIG}: name one of "
        f"{', '.join([*there, *known])}"
    )


def _measured(name: str, folder: Path) -> Side:
    """Return the study in `folder`, from its records or, without any, from its tables."""
    path = folder / stored.CONFIG
    try:
        config = stored.read(folder)
        cells, data, study = grid.of(config), config["dataset"], config["study"]
        keys = pd.json_normalize(config | {"study": ""}).iloc[0]
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise UserError(f"{path} is no configuration of a study ({error!r})") from error
    runs = read_runs(cells, folder / "runs", partial=True)
    if recorded := [record for _, record in runs if record]:
        times, origin = timing(runs), provenance(runs)
        data = data | recorded[0]["dataset"]
    elif (folder / "tables").is_dir():
        times, origin = schema.read_all(["timing", "provenance"], folder / "tables", study).values()
    else:
        raise UserError(f"{folder} has no record of a run and no tables, so no times to compare")
    origin = origin[origin["status"] != "missing"].astype(object).fillna("")
    facts = {
        "GPUs": machine(origin),
        **dict(run_facts(origin)),
        "Data": f"{data['source']}, {data['train_images']:,} train images",
        "Measured": origin["started"].min()[:10],
    }
    settings = {str(key): str(value)[:80] for key, value in keys.items()}
    timed = origin[origin["status"].isin(TIMED)].groupby(CELL_KEYS).size()
    return Side(name, times, facts, settings, int(timed.max()) if len(timed) else 0)


def cells(a: Side, b: Side) -> pd.DataFrame:
    """Return the matched cells, see `comparison.match`; a published study matches all recipes.

    Raises UserError if no cell has a time in both.
    """
    times = [a.times, b.times]
    if bool(a.settings) != bool(b.settings):
        index, measured = (0, b) if b.settings else (1, a)
        recipes = measured.times[["recipe"]].drop_duplicates()
        times[index] = times[index].drop(columns="recipe").merge(recipes, how="cross")
    found = comparison.match(*times)
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
    both = {what: (a.facts[what], b.facts[what]) for what in a.facts if what in b.facts}
    apart = {
        section for part in keys_of.PARTS if part != "scaling" for section in keys_of.EMPTY[part]
    }
    keys = [*a.settings, *b.settings] if a.settings and b.settings else []
    for key in sorted(keys, key=lambda key: key.partition(".")[0] in apart):
        both[key] = (a.settings.get(key, "not set"), b.settings.get(key, "not set"))
    rows = [(what, *pair) for what, pair in both.items() if pair[0] != pair[1]]
    return pd.DataFrame(rows, columns=["what", "a", "b"])


def values(a: Side, b: Side, found: pd.DataFrame) -> dict[str, Any]:
    """Return the values that the page's template uses. Bars range over ratios from 0 to 2."""
    alike, alone = matched.rows(found), alone_cells.rows(found)
    ends = (alike[end].fillna(alike["ratio"]) for end in ("ratio_min", "ratio_max"))
    low, high = (50 * end.clip(upper=1.98) for end in ends)
    sizes = [re.findall(r"[\d,]+(?= parameters)", side.facts.get("Model", "")) for side in (a, b)]
    images = (alike["a_samples"] != alike["b_samples"]).any()
    return {
        "sides": [("A, baseline", a), ("B, contender", b)],
        "summary": summary(found),
        "alone": alone["verdict"].value_counts(sort=False).to_dict(),
        "tables": {table.name: table for table in tables(PARTS["compare"], found, a, b)},
        "bars": list(zip(low, high - low, alike["verdict"], strict=True)),
        "unlike": bool(images) or (all(sizes) and sizes[0] != sizes[1]),
    }


def summary(found: pd.DataFrame) -> str:
    """Return `12 matched cells: 9 faster, 3 within noise, 2 only in A; median ratio 1.03×`."""
    counts, known = found["verdict"].value_counts(), found["ratio"].dropna()
    said = [f"{counts[name]} {name}" for name in comparison.VERDICTS if name in counts]
    head = f"{fmt.plural(len(known), 'matched cell')}: {', '.join(said)}"
    return f"{head}; median ratio {fmt.times(known.median())}"


def refusal(found: pd.DataFrame, mark: float) -> str:
    """Return a sentence on the cells that do not pass `mark`, worst first; "" for none."""
    slow = comparison.too_slow(found, mark).sort_values("ratio", na_position="first")
    named = [
        f"{label(row)} ({row.b_status if pd.isna(row.ratio) else fmt.times(row.ratio)})"
        for row in schema.rows_of(slow)
    ]
    more = f" and {len(named) - 3} more" if len(named) > 3 else ""
    said = f"B is clearly below {mark:g} of the speed of A in {'; '.join(named[:3])}{more}"
    return said if named else ""
