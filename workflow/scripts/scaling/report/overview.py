"""The first screen of the report: what to run, how it scales, what limits it."""

from dataclasses import dataclass, replace
from typing import Any

import pandas as pd
from markupsafe import Markup

from scaling.claims.claim import label
from scaling.claims.q2 import by_efficiency
from scaling.core import numbers as fmt
from scaling.report import frames
from scaling.report.frames import fastest, learned, shown_once
from scaling.report.quantities import printed
from scaling.report.table import Figure, figure, of_cell, place, said
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
    headline: Markup
    text: Markup
    unit: str = ""


def recommended(tables: StudyTables, cells: pd.DataFrame) -> Any | None:
    """Return the row of the cell that the first card recommends, or None.

    It is the cell of the shortest trainings to an accuracy that all of several seeds reached, which
    may be none of `cells`, or else the fastest that learned.
    """
    trained = tables.trained_to_accuracy
    there = trained[(trained["reached"] == trained["seeds"]) & (trained["seeds"] > 1)]
    soonest = next(there.sort_values("training_seconds").itertuples(), None)
    return soonest or fastest_that_learned(cells)


def fastest_that_learned(cells: pd.DataFrame) -> Any | None:
    """Return the fastest cell that learned by several seeds, or else by one, or None."""
    if "reference" not in cells:
        return None
    good = shown_once(cells[learned(cells)])
    return fastest(good[good["test_accuracy_count"] > 1]) or fastest(
        good[good["test_accuracy_count"] > 0]
    )


def marks(tables: StudyTables, cells: pd.DataFrame) -> dict[str, Any]:
    """Return the rows of the cells that the map frames, by why; none that learned nothing."""
    chosen, learner = recommended(tables, cells), fastest_that_learned(cells)
    if chosen is None:
        quickest = fastest(shown_once(cells))
        return {} if quickest is None or _known_accuracy(cells) else {"fastest": quickest}
    sure = hasattr(chosen, "training_seconds") or chosen.test_accuracy_count > 1
    found = {"recommended": chosen} if sure else {}
    same = learner is None or (sure and place(learner) == place(chosen))
    return found if same else found | {"fastest that learned as well": learner}


def _known_accuracy(cells: pd.DataFrame) -> bool:
    return "reference" in cells and bool(cells["test_accuracy"].notna().any())


def cards(tables: StudyTables, cells: pd.DataFrame) -> list[Card]:
    """Return the four cards; none for a study without a timed cell."""
    quickest = fastest(shown_once(cells))
    if quickest is None:
        return []
    chosen = recommended(tables, cells)
    known = [row for row in rows_of(cells) if chosen and place(row) == place(chosen)]
    return [
        _soonest(chosen, tables)
        if hasattr(chosen, "training_seconds")
        else _run_this(chosen, quickest, cells),
        _scaling(cells),
        _the_limit(known[0] if known else fastest_that_learned(cells) or quickest, cells),
        _trust(tables, cells),
    ]


def headline(tables: StudyTables, cells: pd.DataFrame) -> str:
    """Return the cards and what could not be measured, one per line, in ASCII for terminals."""
    lines = []
    for card in cards(tables, cells):
        first = card.text.striptags().partition(". ")[0]
        value = f"{card.headline.striptags()} {card.unit}".rstrip()
        lines.append(f"{card.title}: {value}, {first[0].lower()}{first[1:]}".removesuffix("."))
    cells = shown_once(cells)
    failed = frames.by_status(cells[cells["status"] != "ok"])
    lines.append(f"Not measured: {failed or 'none'} of {fmt.plural(len(cells), 'cell')}")
    text = "\n".join(lines).translate(str.maketrans("×–−·’", "x--,'"))
    return text.encode("ascii", "replace").decode()


def seeds(count: float) -> str:
    """Return `one seed`, `3 seeds`."""
    return "one seed" if count == 1 else fmt.plural(count, "seed")


def _named(row: Any) -> Markup:
    return said("{}", Figure(label(row), of_cell(row)))


def _soonest(best: Any, tables: StudyTables) -> Card:
    ends = (printed(best, f"training_seconds_{end}", fmt.significant) for end in ("min", "max"))
    text = said(
        "{} test accuracy soonest: {}–{} s of training in {} epochs, {}",
        printed(best, "target_accuracy", fmt.percent),
        *ends,
        printed(best, "trained_epochs"),
        seeds(best.seeds),
    )
    trained = tables.trained_to_accuracy
    if pd.notna(best.speedup):
        text += said(
            "; {} as fast as {} at the same global batch (95 % interval {})",
            printed(best, "training_speedup"),
            fmt.gpus(trained["gpus"].min()),
            fmt.span(best.speedup_low, best.speedup_high),
        )
    text += said(". With start-up {} s", printed(best, "trained_run_seconds"))
    for fewer in rows_of(trained[trained["gpus"] < best.gpus]):
        sooner = "sooner " if fewer.run_seconds < best.run_seconds else ""
        on = f"{sooner}on {fmt.gpus(fewer.gpus)}"
        text += said(", {}: {} s", on, printed(fewer, "trained_run_seconds"))
    return Card(RECOMMENDED, _named(best), text + ".")


def _run_this(chosen: Any | None, quickest: Any, cells: pd.DataFrame) -> Card:
    an_epoch = printed(quickest, "epoch_seconds", fmt.seconds)
    if chosen is None:
        learned = "No cell learned as its reference."
        why = learned if _known_accuracy(cells) else "No accuracy is known."
        return Card("Fastest", _named(quickest), said("{} an epoch. {}", an_epoch, why))
    count = chosen.test_accuracy_count
    text = said(
        "{} an epoch: the fastest that learns ({}{}).",
        printed(chosen, "epoch_seconds", fmt.seconds),
        printed(chosen, "test_accuracy"),
        f", {seeds(count)}" if count > 1 else "",
    )
    if chosen.Index != quickest.Index:
        learns: Any = ", accuracy unknown"
        if pd.notna(quickest.test_accuracy):
            learns = said(", but {}", printed(quickest, "test_accuracy"))
        text += said(" Fastest of all: {}, {}{}.", _named(quickest), an_epoch, learns)
    title = RECOMMENDED if count > 1 else "Fastest that learned, one seed"
    return Card(title, _named(chosen), text)


def _ends(cells: pd.DataFrame, quantity: str) -> Markup:
    """Return the least and the most of a quantity: `1.83–1.98×`, figures of these two cells."""
    ordered = cells.sort_values(quantity).iloc[[0, -1]]
    low, high = (printed(row, quantity) for row in rows_of(ordered))
    if low.text == high.text:
        return said("{}", high)
    return said("{}–{}", replace(low, text=low.text.rstrip("× %")), high)


def _scaling(cells: pd.DataFrame) -> Card:
    found = by_efficiency(cells)
    if not found:
        return Card("Scaling", said("not measured"), said("No cell on several GPUs has a speedup."))
    (name, best), *others = found
    gpus, speedup = int(best["gpus"].iloc[0]), best["speedup"]
    slow = "Slower" if speedup.max() < 1 else "Not always faster"
    title = "Faster" if speedup.min() > 1 else slow
    text = said("{}: {} efficient.", name, _ends(best, "efficiency"))
    if speedup.max() > gpus:
        text += said(" Above {}× the GPUs alone cannot be the cause.", gpus)
    for other, rows in others[:3]:
        text += said(" {}: {}.", other, _ends(rows, "speedup"))
    return Card(f"{title} on {fmt.gpus(gpus)}", _ends(best, "speedup"), text)


def _the_limit(chosen: Any, cells: pd.DataFrame) -> Card:
    shares = {name: share for name in LIMITS if pd.notna(share := getattr(chosen, name))}
    if not shares:
        return Card("The limit is", said("not measured"), said("No peak was measured."))
    name = max(shares, key=lambda one: shares[one])
    words, advice = LIMITS[name]
    share = printed(chosen, name, fmt.percent)
    text = said("{} of an epoch of {}. {}", share, _named(chosen), advice)
    capped = printed(chosen, "power_capped_share", fmt.percent)
    if chosen.power_capped_share >= CAPPED:
        part = f"{words[0].upper()}{words[1:]}"
        text, words = said("At its limit {} of the time. {}: {}", capped, part, text), "power"
    elif chosen.power_capped_share > 0.05:
        text += said(" At the power limit {} of the time.", capped)
    waits = cells[(cells["recipe"] != chosen.recipe) & (cells["loading_share"] > 0.3)]
    for recipe, rows in waits[waits["status"] == "ok"].groupby("recipe", sort=False):
        worst = next(rows_of(rows.nlargest(1, "loading_share")))
        text += said(" {}: waiting for data, up to {}.", recipe, printed(worst, "loading_share"))
    return Card("The limit is", said(words), text)


def _trust(tables: StudyTables, cells: pd.DataFrame) -> Card:
    repeated = cells[cells["count"] > 1]
    if repeated.empty:
        why = "No epoch was repeated, so noise is unknown."
        return Card("Trust", said("measured once"), said(why))
    width = repeated["epoch_seconds_max"] - repeated["epoch_seconds_min"]
    repeated = shown_once(repeated.assign(spread=width / repeated["epoch_seconds"]))
    of_recipes = repeated.groupby("recipe", sort=False)["spread"].median().sort_values()
    (steady, spread), *others = of_recipes.items()
    text = said("").join(said("{}: {}. ", name, fmt.percent(share)) for name, share in others)
    rerun = repeated[repeated["runs"] > 1]
    if len(rerun):
        apart = rerun["epoch_seconds_run_max"] / rerun["epoch_seconds_run_min"] - 1
        between = apart.groupby(rerun["recipe"], sort=False).median().sort_values()
        of = ", ".join(f"{name} {fmt.percent(share)}" for name, share in between.items())
        text += said("Between runs: {}. ", of)
    count = tables.provenance["seed"].nunique()
    text += said("Accuracies in the map: one seed." if count == 1 else f"{count} seeds.")
    text += said(" Audit: {}.", frames.audit_counts(tables.audit))
    drifting = shown_once(frames.drifting(cells)).sort_values("drift", key=abs, ascending=False)
    for row in rows_of(drifting.head(1)):
        change = figure(f"{100 * abs(row.drift):.0f} %", row, "drift", row.drift)
        many = fmt.plural(len(drifting), "cell")
        text += said(" Still changing: {} (~), by up to {}.", many, change)
    median = figure(fmt.percent(spread), None, f"median_epoch_spread_{steady}", spread)
    unit = f"from shortest to longest epoch ({steady}, median)"
    return Card("Trust", said("{}", median), text, unit)
