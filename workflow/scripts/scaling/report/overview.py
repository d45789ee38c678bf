"""The first screen of the report: what to run, how it scales, what limits it."""

from dataclasses import dataclass
from typing import Any

import pandas as pd

from scaling.core import numbers as fmt
from scaling.report import frames
from scaling.tables.schema import StudyTables, by_configuration, rows_of

LEARNS = 0.02
"""The largest loss in test accuracy to the reference of a cell that learns."""
LIMITS = {
    "loading_share": (
        "waiting for data",
        "More loader workers, or a recipe that keeps images on the GPU.",
    ),
    "communication_share": ("communication", "A larger batch on each GPU sends less often."),
    "utilization": ("arithmetic at sprint peak", "Only faster GPUs or fewer operations help."),
    "slower_share": ("kernels below sprint peak", "Larger batches, fewer and larger kernels."),
    "idle_share": ("an idle GPU", "Larger batches, CUDA graphs: fewer launches an image."),
    "unknown_share": ("not known", "No trace tells whether the GPU computes or idles."),
}
"""Parts of an epoch by the columns of their shares, and how to reduce each."""


@dataclass(frozen=True)
class Card:
    """A card at the top of the page."""

    title: str
    headline: str
    unit: str
    text: str


def fastest(cells: pd.DataFrame) -> Any | None:
    """Return the cell with the shortest epoch, or None."""
    timed = cells[cells["status"] == "ok"].dropna(subset="epoch_seconds")
    return next(timed.sort_values("epoch_seconds").itertuples(), None)


def recommended(cells: pd.DataFrame, seeds: int = 2) -> Any | None:
    """Return the cell with the shortest time to an accuracy that several seeds reached.

    Without such a time it is the fastest one whose mean test accuracy over `seeds` is within
    `LEARNS` of its reference, or None.
    """
    timed = cells[(cells["status"] == "ok") & cells[frames.SECONDS_TO].notna()]
    if len(timed) or "reference" not in cells:
        return next(timed.sort_values(frames.SECONDS_TO).itertuples(), None)
    near = cells["reference"].eq(True) | (cells["difference"] >= -LEARNS)
    return fastest(cells[near & (cells["test_accuracy_count"] >= seeds)])


def likely(cells: pd.DataFrame) -> Any | None:
    """Return the recommended cell, or else the fastest that learned in one seed."""
    return recommended(cells) or recommended(cells, seeds=1)


def cards(tables: StudyTables, cells: pd.DataFrame) -> list[Card]:
    """Return the four cards; none for a study without a timed cell."""
    if fastest(cells) is None:
        return []
    run_this = _trained_soonest(tables) or _run_this(cells)
    return [run_this, _it_scales(cells), _the_limit(cells), _trust(tables, cells)]


def headline(tables: StudyTables, cells: pd.DataFrame) -> str:
    """Return the cards and what could not be measured, one per line, in ASCII for terminals."""
    lines = [
        f"{card.title:<13} {card.headline} {card.unit}".rstrip()
        + f", {card.text[0].lower()}{card.text[1:].partition('. ')[0]}"
        for card in cards(tables, cells)
    ]
    failed = cells["status"][cells["status"] != "ok"].value_counts()
    counts = ", ".join(f"{count} {status}" for status, count in failed.items())
    lines.append(f"{'Not measured':<13} {counts or 'none'} of {fmt.plural(len(cells), 'cell')}")
    if pd.notna(share := measured_share(tables.startup)):
        lines.append(f"{'Time':<13} {fmt.percent(share)} of the runs' GPU time in measured epochs")
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


def _trained_soonest(tables: StudyTables) -> Card | None:
    """Return the cell with the shortest trainings to an accuracy that all seeds reached."""
    trained = tables.trained_to_accuracy
    there = trained[(trained["reached"] == trained["seeds"]) & (trained["seeds"] > 1)]
    best: Any = next(there.sort_values("training_seconds").itertuples(), None)
    if best is None:
        return None
    text = f"{fmt.percent(best.target_accuracy)} test accuracy soonest: "
    text += f"{fmt.span(best.training_seconds_min, best.training_seconds_max)} s of training "
    text += f"in {fmt.plural(best.epochs, 'epoch')}, {seeds(best.seeds)}"
    if pd.notna(best.speedup):
        text += f"; {fmt.times(best.speedup)} as fast as {fmt.gpus(trained['gpus'].min())}"
        text += f" (95 %: {fmt.span(best.speedup_low, best.speedup_high)})"
    return Card("Run this", frames.label(best), "", f"{text}.")


def _run_this(cells: pd.DataFrame) -> Card:
    quickest: Any = fastest(cells)
    chosen: Any = likely(cells)
    title = "Run this" if recommended(cells) else "Unproven best"
    if chosen is None:
        text = f"{fmt.seconds(quickest.epoch_seconds)} an epoch, "
        text += "by speed alone: no accuracy is known."
        return Card(title, frames.label(quickest), "", text)
    text = f"{fmt.seconds(chosen.epoch_seconds)} an epoch: "
    if pd.notna(chosen.seconds_to_accuracy):
        soonest = f"{fmt.percent(chosen.target_accuracy)} test accuracy soonest, in "
        text += soonest + fmt.seconds(chosen.seconds_to_accuracy)
        text += f" ({chosen.remedy}, {seeds(chosen.reached)})."
    else:
        text += f"the fastest that learns ({fmt.percent(chosen.test_accuracy)}, "
        text += f"{seeds(chosen.test_accuracy_count)})."
    if chosen.Index != quickest.Index:
        text += f" Fastest of all: {frames.label(quickest)}, {fmt.seconds(quickest.epoch_seconds)}"
        learned = quickest.test_accuracy
        text += ", accuracy unknown." if pd.isna(learned) else f", but {fmt.percent(learned)}."
    return Card(title, frames.label(chosen), "", text)


def speedups(cells: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """Return the cells on the most GPUs by configuration, the most efficient first."""
    known = cells[(cells["gpus"] > 1) & cells["speedup"].notna()]
    known = known[known["gpus"] == known["gpus"].max()]
    named = [(f"{recipe}/{strategy}", rows) for recipe, strategy, rows in by_configuration(known)]
    return sorted(named, key=lambda one: -one[1]["efficiency"].median())


def times_span(values: pd.Series) -> str:
    """Return `1.83–1.98×`."""
    low, high = fmt.significant(values.min()), fmt.times(values.max())
    return high if len(values) == 1 else f"{low}–{high}"


def _it_scales(cells: pd.DataFrame) -> Card:
    found = speedups(cells)
    if not found:
        return Card("It scales", "not measured", "", "No cell on several GPUs has a speedup.")
    (name, best), *others = found
    ends = map(fmt.percent, (best["efficiency"].min(), best["efficiency"].max()))
    text = f"{name}: {' to '.join(dict.fromkeys(ends))} efficient."
    text += "".join(f" {other}: {times_span(rows['speedup'])}." for other, rows in others[:3])
    return Card("It scales", times_span(best["speedup"]), f"of {int(best['gpus'].iloc[0])}", text)


def _the_limit(cells: pd.DataFrame) -> Card:
    chosen: Any = likely(cells) or fastest(cells)
    shares = {name: getattr(chosen, name) for name in LIMITS}
    known = {name: share for name, share in shares.items() if pd.notna(share)}
    if not known:
        return Card("The limit is", "not measured", "", "No peak was measured.")
    name = max(known, key=lambda one: known[one])
    words, advice = LIMITS[name]
    text = f"{fmt.percent(known[name])} of an epoch of {frames.label(chosen)}. {advice}"
    capped = chosen.power_capped_share
    if pd.notna(capped) and capped > 0.05:
        text += f" At the power limit {fmt.percent(capped)} of the time."
    for recipe, rows in cells[cells["status"] == "ok"].groupby("recipe", sort=False):
        worst = rows["loading_share"].max()
        if recipe != chosen.recipe and worst > 0.3:
            text += f" {recipe}: waiting for data, up to {fmt.percent(worst)}."
    return Card("The limit is", words, "", text)


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
        f"{'One seed: accuracies are single.' if seeds == 1 else fmt.plural(seeds, 'seed') + '.'} "
        f"Audit: {frames.audit_counts(tables.audit)}."
    )
    for row in rows_of(drifting.head(1)):
        change = f"{100 * abs(row.drift):.0f} % {'slower' if row.drift > 0 else 'faster'}"
        text += f" Not settled: {fmt.cell_name(row)} (ended {change}){more}."
    return Card("Trust", fmt.percent(spread.median()), "median spread of an epoch", text)
