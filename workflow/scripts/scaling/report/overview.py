"""The first screen of the report: what to run, how it scales, what limits it."""

from dataclasses import dataclass
from typing import Any

import pandas as pd

from scaling.claims.phrases import label
from scaling.claims.q2 import by_efficiency
from scaling.core import numbers as fmt
from scaling.core.grid import CELL_KEYS
from scaling.report import frames
from scaling.report.frames import fastest, learned, shown_once
from scaling.report.table import Figure, Text, figure, of_cell, place
from scaling.report.views import printed
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
CAPPED = 0.9
"""The share of the time at its power limit from which a GPU is limited by power."""
RECOMMENDED = "Run this"


@dataclass(frozen=True)
class Card:
    """A card at the top of the page."""

    title: str
    headline: str | Text | Figure
    unit: str
    text: str | Text


def recommended(tables: StudyTables, cells: pd.DataFrame) -> Any | None:
    """Return the row of the cell that the first card recommends, or None.

    It is the cell of the shortest trainings to an accuracy that all seeds reached, which may be
    none of `cells`, or else the fastest whose mean accuracy over several seeds is within
    `frames.LEARNS` of its reference, or else that of one seed.
    """
    trained = tables.trained_to_accuracy
    there = trained[(trained["reached"] == trained["seeds"]) & (trained["seeds"] > 1)]
    soonest = next(there.sort_values("training_seconds").itertuples(), None)
    return soonest or _fastest_that_learned(cells)


def _fastest_that_learned(cells: pd.DataFrame) -> Any | None:
    if "reference" not in cells:
        return None
    good = shown_once(cells[learned(cells)])
    return fastest(good[good["test_accuracy_count"] > 1]) or fastest(
        good[good["test_accuracy_count"] > 0]
    )


def cards(tables: StudyTables, cells: pd.DataFrame) -> list[Card]:
    """Return the four cards; none for a study without a timed cell."""
    quickest = fastest(shown_once(cells))
    if quickest is None:
        return []
    chosen = recommended(tables, cells)
    known = [row for row in rows_of(cells) if chosen and place(row) == place(chosen)]
    limited = known[0] if known else _fastest_that_learned(cells) or quickest
    return [
        _soonest(chosen, tables)
        if hasattr(chosen, "training_seconds")
        else _run_this(chosen, quickest, cells),
        _scaling(cells),
        _the_limit(limited, cells, tables.step_classes),
        _trust(tables, cells),
    ]


def headline(tables: StudyTables, cells: pd.DataFrame) -> str:
    """Return the cards and what could not be measured, one per line, in ASCII for terminals."""
    lines = []
    for card in cards(tables, cells):
        first = str(card.text).partition(". ")[0]
        lines.append(f"{card.title}: {card.headline} {card.unit}".rstrip())
        lines[-1] += f", {first[0].lower()}{first[1:]}"
    cells = shown_once(cells)
    failed = cells["status"][cells["status"] != "ok"].value_counts()
    counts = ", ".join(f"{count} {fmt.words(status)}" for status, count in failed.items())
    lines.append(f"Not measured: {counts or 'none'} of {fmt.plural(len(cells), 'cell')}")
    if pd.notna(share := measured_share(tables.costs)):
        lines.append(f"Time: {fmt.percent(share)} of the runs' GPU time in measured epochs")
    text = "\n".join(line.removesuffix(".") for line in lines)
    return text.translate(str.maketrans("×–−·’", "x--,'")).encode("ascii", "replace").decode()


def measured_share(costs: pd.DataFrame) -> float:
    """Return the share of GPU time, start-up included, that measured epochs took."""
    runs = costs[costs["run_seconds"].notna()].drop_duplicates(
        ["recipe", "gpus", "batch_size", "run_seconds"]
    )
    spent = (runs["gpus"] * runs["run_seconds"]).sum()
    return (runs["gpus"] * runs["measured_seconds"]).sum() / spent if spent else float("nan")


def seeds(count: float) -> str:
    """Return `one seed`, `3 seeds`."""
    return "one seed" if count == 1 else fmt.plural(count, "seed")


def _named(row: Any) -> Figure:
    return Figure(label(row), of_cell(row))


def _soonest(best: Any, tables: StudyTables) -> Card:
    low, high = (
        printed(best, f"training_seconds_{end}", fmt.significant) for end in ("min", "max")
    )
    epochs = printed(best, "trained_epochs", lambda count: fmt.plural(count, "epoch"))
    said: list[str | Figure] = [printed(best, "target_accuracy", fmt.percent)]
    said += [" test accuracy soonest: ", low, "–", high, " s of training in ", epochs]
    said += [f", {seeds(best.seeds)}"]
    if pd.notna(best.speedup):
        fewest = tables.trained_to_accuracy["gpus"].min()
        said += ["; ", printed(best, "training_speedup"), f" as fast as {fmt.gpus(fewest)}"]
        said += [" at the same global batch (95 % interval "]
        said += [f"{fmt.span(best.speedup_low, best.speedup_high)})"]
    said += [". With start-up ", printed(best, "trained_run_seconds"), " s"]
    for alone in rows_of(
        tables.trained_to_accuracy[tables.trained_to_accuracy["gpus"] < best.gpus]
    ):
        sooner = "sooner " if alone.run_seconds < best.run_seconds else ""
        said += [f", {sooner}on {fmt.gpus(alone.gpus)}: "]
        said += [printed(alone, "trained_run_seconds"), " s"]
    said += ["."]
    return Card(RECOMMENDED, _named(best), "", Text(said))


def _run_this(chosen: Any | None, quickest: Any, cells: pd.DataFrame) -> Card:
    an_epoch = printed(quickest, "epoch_seconds", fmt.seconds)
    if chosen is None:
        known = "reference" in cells and cells["test_accuracy"].notna().any()
        why = "No cell learned as its reference." if known else "No accuracy is known."
        return Card("Fastest", _named(quickest), "", Text([an_epoch, f" an epoch. {why}"]))
    several = chosen.test_accuracy_count > 1
    said: list[str | Figure] = [printed(chosen, "epoch_seconds", fmt.seconds)]
    said += [" an epoch: the fastest that learns (", printed(chosen, "test_accuracy")]
    said += [f", {seeds(chosen.test_accuracy_count)})." if several else ")."]
    if chosen.Index != quickest.Index:
        said += [" Fastest of all: ", _named(quickest), ", ", an_epoch]
        if pd.isna(quickest.test_accuracy):
            said += [", accuracy unknown."]
        else:
            said += [", but ", printed(quickest, "test_accuracy"), "."]
    title = RECOMMENDED if several else "Fastest that learned, one seed"
    return Card(title, _named(chosen), "", Text(said))


def _ends(cells: pd.DataFrame, quantity: str) -> tuple[Any, Any]:
    """Return the cells with the least and the most of a quantity."""
    ordered = list(rows_of(cells.sort_values(quantity)))
    return ordered[0], ordered[-1]


def _speedup_span(cells: pd.DataFrame) -> Text:
    """Return `1.83–1.98×`, figures of the two cells at the ends."""
    low, high = _ends(cells, "speedup")
    most = printed(high, "speedup", fmt.times)
    if len(cells) == 1:
        return Text([most])
    return Text([printed(low, "speedup", fmt.significant), "–", most])


def _scaling(cells: pd.DataFrame) -> Card:
    found = by_efficiency(cells)
    if not found:
        return Card("Scaling", "not measured", "", "No cell on several GPUs has a speedup.")
    (name, best), *others = found
    gpus, speedup = int(best["gpus"].iloc[0]), best["speedup"]
    said = "Faster" if speedup.min() > 1 else "Slower" if speedup.max() < 1 else "Not always faster"
    low, high = (printed(row, "efficiency") for row in _ends(best, "efficiency"))
    text: list[str | Figure] = [f"{name}: ", low]
    if str(low) != str(high):
        text += [" to ", high]
    text += [" efficient."]
    if speedup.max() > gpus:
        text += [f" Above {gpus}× the GPUs alone cannot be the cause."]
    for other, rows in others[:3]:
        text += [f" {other}: ", *_speedup_span(rows), "."]
    return Card(f"{said} on {fmt.gpus(gpus)}", _speedup_span(best), "", Text(text))


def _the_limit(chosen: Any, cells: pd.DataFrame, classes: pd.DataFrame) -> Card:
    shares = {name: getattr(chosen, name) for name in LIMITS}
    known = {name: share for name, share in shares.items() if pd.notna(share)}
    if not known:
        return Card("The limit is", "not measured", "", "No peak was measured.")
    name = max(known, key=lambda one: known[one])
    words, advice = LIMITS[name]
    text: list[str | Figure] = [
        printed(chosen, name, fmt.percent),
        " of an epoch of ",
        _named(chosen),
        f". {advice}",
        *_reached(chosen, classes),
    ]
    capped = printed(chosen, "power_capped_share", fmt.percent)
    if chosen.power_capped_share >= CAPPED:
        text = ["At its limit ", capped, f" of the time. {words[0].upper()}{words[1:]}: ", *text]
        words = "power"
    elif chosen.power_capped_share > 0.05:
        text += [" At the power limit ", capped, " of the time."]
    waits = cells[(cells["recipe"] != chosen.recipe) & (cells["loading_share"] > 0.3)]
    for recipe, rows in waits[waits["status"] == "ok"].groupby("recipe", sort=False):
        _, worst = _ends(rows, "loading_share")
        text += [f" {recipe}: waiting for data, up to ", printed(worst, "loading_share"), "."]
    return Card("The limit is", words, "", Text(text))


def _reached(chosen: Any, classes: pd.DataFrame) -> list[str | Figure]:
    """Return what the larger classes of a step's kernels reach, and the step's least time."""
    own = classes.merge(pd.DataFrame({key: [getattr(chosen, key)] for key in CELL_KEYS}))
    own, step = own.set_index("kernel_class", drop=False), own["seconds"].sum()
    said: list[str | Figure] = []
    for row in rows_of(own[own["seconds"] > 0.05 * step].dropna(subset="reached")):
        reached = figure(fmt.percent(row.reached), row, f"{row.kernel_class}_reached", row.reached)
        limit = "peak" if row.unit == "FLOP/s" else "bandwidth"
        said += [", " if said else " Kernels: ", f"{row.kernel_class} at ", reached, f" of {limit}"]
    if not said:
        return []
    idle, least = own["seconds"].get("idle", 0.0) / step, own["least_seconds"].sum() / step
    said += ["; idle ", figure(fmt.percent(idle), chosen, "idle_of_a_step", idle)]
    at_limits = figure(fmt.percent(least), chosen, "least_of_a_step", least)
    return [*said, ". At these limits a step takes ", at_limits, " of its time."]


def _trust(tables: StudyTables, cells: pd.DataFrame) -> Card:
    repeated = cells[cells["count"] > 1]
    if repeated.empty:
        return Card("Trust", "measured once", "", "No epoch was repeated, so noise is unknown.")
    width = repeated["epoch_seconds_max"] - repeated["epoch_seconds_min"]
    repeated = shown_once(repeated.assign(spread=width / repeated["epoch_seconds"]))
    count, rerun = tables.provenance["seed"].nunique(), repeated[repeated["runs"] > 1]
    apart = rerun["epoch_seconds_run_max"] / rerun["epoch_seconds_run_min"] - 1
    of_recipes = repeated.groupby("recipe", sort=False)["spread"].median().sort_values()
    (steady, spread), *others = of_recipes.items()
    text: list[str | Figure] = [
        f"Epochs of {name}: {fmt.percent(share)}. " for name, share in others
    ]
    between = apart.groupby(rerun["recipe"], sort=False).median().sort_values()
    said = ", ".join(f"{name} {fmt.percent(share)}" for name, share in between.items())
    text += [f"Between runs: {said}. "] if len(rerun) else []
    text += ["Accuracies in the map: one seed." if count == 1 else f"{fmt.plural(count, 'seed')}."]
    text += [f" Audit: {frames.audit_counts(tables.audit)}."]
    drifting = repeated[repeated["drift"].notna() & ~repeated["settled"]]
    drifting = drifting.sort_values("drift", key=abs, ascending=False)
    more = f", and {fmt.plural(len(drifting) - 1, 'other cell')}" if len(drifting) > 1 else ""
    for row in rows_of(drifting.head(1)):
        change = figure(f"{100 * abs(row.drift):.0f} %", row, "drift", row.drift)
        text += [f" Still changing: {fmt.cell_name(row)} ended ", change]
        text += [f" {'slower' if row.drift > 0 else 'faster'}{more}."]
    median = figure(fmt.percent(spread), None, f"median_epoch_spread_{steady}", spread)
    return Card("Trust", median, f"median spread of {steady}’s epochs", Text(text))
