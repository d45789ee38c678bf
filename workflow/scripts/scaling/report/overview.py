"""The first screen of the report: what to run, how it scales, what limits it."""

from dataclasses import dataclass
from typing import Any

import pandas as pd

from scaling.claims.phrases import label, span_of_times
from scaling.claims.q2 import by_efficiency
from scaling.core import numbers as fmt
from scaling.core.grid import CELL_KEYS
from scaling.report import frames
from scaling.report.frames import fastest, learned
from scaling.tables.schema import StudyTables, rows_of

LIMITS = {
    "loading_share": (
        "waiting for data",
        "More loader workers help, or a recipe that keeps images on the GPU.",
    ),
    "communication_share": ("communication", "Fewer messages an image help."),
    "utilization": ("arithmetic at the GPU’s peak", "Only faster GPUs or fewer operations help."),
    "slower_share": ("kernels below the GPU’s peak", "Fewer and larger kernels help."),
    "idle_share": ("an idle GPU", "Fewer launches an image help, as CUDA graphs do."),
    "unknown_share": ("not known", "No trace tells whether the GPU computes or idles."),
}
"""Parts of an epoch by the columns of their shares, and how to reduce each."""
LARGER_HELP = {"communication_share", "slower_share", "idle_share"}
"""Those that larger batches reduce."""
CAPPED = 0.9
"""The share of the time at its power limit from which a GPU is limited by power."""


@dataclass(frozen=True)
class Card:
    """A card at the top of the page."""

    title: str
    headline: str
    unit: str
    text: str


def recommended(tables: StudyTables, cells: pd.DataFrame) -> Any | None:
    """Return the cell that the first card recommends; None if it recommends none of the map.

    It is the cell of the shortest trainings to an accuracy that all seeds reached, or else the
    fastest whose mean accuracy over several seeds is within `frames.LEARNS` of its reference.
    """
    trained = _trained_soonest(tables)
    if trained is None:
        return _fastest_that_learned(cells, seeds=2)
    there = (cells[list(CELL_KEYS)] == [getattr(trained, key) for key in CELL_KEYS]).all(axis=1)
    return next(cells[there].itertuples(), None)


def _fastest_that_learned(cells: pd.DataFrame, seeds: int) -> Any | None:
    if "reference" not in cells:
        return None
    return fastest(cells[learned(cells) & (cells["test_accuracy_count"] >= seeds)])


def cards(tables: StudyTables, cells: pd.DataFrame) -> list[Card]:
    """Return the four cards; none for a study without a timed cell."""
    if fastest(cells) is None:
        return []
    trained = _trained_soonest(tables)
    chosen = recommended(tables, cells) or _fastest_that_learned(cells, seeds=1)
    first = _run_this(chosen, cells) if trained is None else _soonest(trained, tables, cells)
    return [
        first,
        _scaling(cells),
        _the_limit(chosen or fastest(cells), cells),
        _trust(tables, cells),
    ]


def headline(tables: StudyTables, cells: pd.DataFrame) -> str:
    """Return the cards and what could not be measured, one per line, in ASCII for terminals."""
    lines = [
        f"{card.title}: {card.headline} {card.unit}".rstrip()
        + f", {card.text[0].lower()}{card.text[1:].partition('. ')[0]}"
        for card in cards(tables, cells)
    ]
    failed = cells["status"][cells["status"] != "ok"].value_counts()
    counts = ", ".join(f"{count} {fmt.words(status)}" for status, count in failed.items())
    lines.append(f"Not measured: {counts or 'none'} of {fmt.plural(len(cells), 'cell')}")
    if pd.notna(share := measured_share(tables.startup)):
        lines.append(f"Time: {fmt.percent(share)} of the runs' GPU time in measured epochs")
    text = "\n".join(line.removesuffix(".") for line in lines)
    return text.translate(str.maketrans("×–−·’", "x--,'")).encode("ascii", "replace").decode()


def measured_share(startup: pd.DataFrame) -> float:
    """Return the share of GPU time, start-up included, that measured epochs took."""
    runs = startup[startup["run_seconds"].notna()].drop_duplicates(
        ["recipe", "gpus", "batch_size", "run_seconds"]
    )
    spent = (runs["gpus"] * runs["run_seconds"]).sum()
    return (runs["gpus"] * runs["measured_seconds"]).sum() / spent if spent else float("nan")


def seeds(count: float) -> str:
    """Return `one seed`, `3 seeds`."""
    return "one seed" if count == 1 else fmt.plural(count, "seed")


def _trained_soonest(tables: StudyTables) -> Any | None:
    """Return the row with the shortest trainings to an accuracy that all seeds reached."""
    trained = tables.trained_to_accuracy
    there = trained[(trained["reached"] == trained["seeds"]) & (trained["seeds"] > 1)]
    return next(there.sort_values("training_seconds").itertuples(), None)


def _soonest(best: Any, tables: StudyTables, cells: pd.DataFrame) -> Card:
    text = f"{fmt.percent(best.target_accuracy)} test accuracy soonest: "
    text += f"{fmt.span(best.training_seconds_min, best.training_seconds_max)} s of training "
    text += f"in {fmt.plural(best.epochs, 'epoch')}, {seeds(best.seeds)}"
    if pd.notna(best.speedup):
        fewest = tables.trained_to_accuracy["gpus"].min()
        text += f"; {fmt.times(best.speedup)} as fast as {fmt.gpus(fewest)}"
        text += f" (95 %: {fmt.span(best.speedup_low, best.speedup_high)})"
    apart = (
        "" if recommended(tables, cells) else " A training of its own: the map has no such cell."
    )
    return Card("Run this", label(best), "", f"{text}.{apart}")


def _run_this(chosen: Any | None, cells: pd.DataFrame) -> Card:
    quickest: Any = fastest(cells)
    if chosen is None:
        known = "reference" in cells and cells["test_accuracy"].notna().any()
        text = f"{fmt.seconds(quickest.epoch_seconds)} an epoch. "
        text += "No cell learned as its reference." if known else "No accuracy is known."
        return Card("Fastest", label(quickest), "", text)
    several = chosen.test_accuracy_count > 1
    title = "Run this" if several else "Fastest that learned, one seed"
    text = f"{fmt.seconds(chosen.epoch_seconds)} an epoch: "
    text += f"the fastest that learns ({fmt.percent(chosen.test_accuracy)}, "
    text += f"{seeds(chosen.test_accuracy_count)})."
    if chosen.Index != quickest.Index:
        text += f" Fastest of all: {label(quickest)}, {fmt.seconds(quickest.epoch_seconds)}"
        reached = quickest.test_accuracy
        text += ", accuracy unknown." if pd.isna(reached) else f", but {fmt.percent(reached)}."
    return Card(title, label(chosen), "", text)


def _scaling(cells: pd.DataFrame) -> Card:
    found = by_efficiency(cells)
    if not found:
        return Card("Scaling", "not measured", "", "No cell on several GPUs has a speedup.")
    (name, best), *others = found
    gpus, speedup = int(best["gpus"].iloc[0]), best["speedup"]
    said = "Faster" if speedup.min() > 1 else "Slower" if speedup.max() < 1 else "Not always faster"
    ends = map(fmt.percent, (best["efficiency"].min(), best["efficiency"].max()))
    text = f"{name}: {' to '.join(dict.fromkeys(ends))} efficient."
    if speedup.max() > gpus:
        text += f" Above {gpus}× the GPUs alone cannot be the cause."
    text += "".join(f" {other}: {span_of_times(rows['speedup'])}." for other, rows in others[:3])
    return Card(f"{said} on {fmt.gpus(gpus)}", span_of_times(speedup), "", text)


def _the_limit(chosen: Any, cells: pd.DataFrame) -> Card:
    shares = {name: getattr(chosen, name) for name in LIMITS}
    known = {name: share for name, share in shares.items() if pd.notna(share)}
    if not known:
        return Card("The limit is", "not measured", "", "No peak was measured.")
    name = max(known, key=lambda one: known[one])
    words, advice = LIMITS[name]
    text = f"{fmt.percent(known[name])} of an epoch of {label(chosen)}. {advice}"
    if name in LARGER_HELP:
        text += _larger_batches(chosen, cells)
    if (capped := chosen.power_capped_share) >= CAPPED:
        text = (
            f"At its limit {fmt.percent(capped)} of the time. {words[0].upper()}{words[1:]}: {text}"
        )
        words = "power"
    elif capped > 0.05:
        text += f" At the power limit {fmt.percent(capped)} of the time."
    for recipe, rows in cells[cells["status"] == "ok"].groupby("recipe", sort=False):
        worst = rows["loading_share"].max()
        if recipe != chosen.recipe and worst > 0.3:
            text += f" {recipe}: waiting for data, up to {fmt.percent(worst)}."
    return Card("The limit is", words, "", text)


def _larger_batches(chosen: Any, cells: pd.DataFrame) -> str:
    """Return whether larger batches of this configuration help: not where they learn less."""
    own = cells[(cells["status"] == "ok") & (cells["batch_size"] > chosen.batch_size)]
    own = own[(own[CELL_KEYS[:3]] == [getattr(chosen, key) for key in CELL_KEYS[:3]]).all(axis=1)]
    if own.empty:
        return ""
    known = own[own["test_accuracy"].notna()] if "reference" in own else own.iloc[:0]
    if known.empty or learned(known).any():
        return " So do larger batches."
    return " So do larger batches, which learn less here."


def _trust(tables: StudyTables, cells: pd.DataFrame) -> Card:
    repeated = cells[cells["count"] > 1]
    if repeated.empty:
        return Card("Trust", "measured once", "", "No epoch was repeated, so noise is unknown.")
    width = repeated["epoch_seconds_max"] - repeated["epoch_seconds_min"]
    spread = width / repeated["epoch_seconds"]
    seeds, rerun = tables.provenance["seed"].nunique(), cells[cells["runs"] > 1]
    apart = rerun["epoch_seconds_run_max"] / rerun["epoch_seconds_run_min"] - 1
    between = f"Between runs {fmt.percent(apart.median())}. " if len(rerun) else ""
    drifting = frames.shown_once(repeated[repeated["drift"].notna() & ~repeated["settled"]])
    drifting = drifting.sort_values("drift", key=abs, ascending=False)
    more = f" and {len(drifting) - 1} more" if len(drifting) > 1 else ""
    text = (
        f"Worst cell {fmt.percent(spread.max())}. {between}"
        f"{'Accuracies in the map: one seed.' if seeds == 1 else fmt.plural(seeds, 'seed') + '.'} "
        f"Audit: {frames.audit_counts(tables.audit)}."
    )
    for row in rows_of(drifting.head(1)):
        change = f"{100 * abs(row.drift):.0f} % {'slower' if row.drift > 0 else 'faster'}"
        text += f" Still changing: {fmt.cell_name(row)} ended {change}{more}."
    return Card("Trust", fmt.percent(spread.median()), "median spread of an epoch", text)
