"""The first screen of the report: what to run, how it scales, what limits it."""

from dataclasses import replace
from typing import Any, NamedTuple

import pandas as pd
from markupsafe import Markup

from scaling.claims.claim import label
from scaling.claims.q2 import by_efficiency
from scaling.claims.q3 import PARTS
from scaling.core import numbers as fmt
from scaling.report.cells import by_status, drifting, fastest, learned
from scaling.report.quantities import printed
from scaling.report.table import Figure, figure, of_cell, place, said
from scaling.tables.noise import Noise
from scaling.tables.schema import StudyTables, rows_of

LIMITS = {
    "loading_share": ("waiting for data", "More loader workers help, or images on the GPU."),
    "communication_share": ("messages", "Fewer messages an image help."),
    "utilization": ("arithmetic at the GPU’s peak", "Only faster GPUs or less work help."),
    "slower_share": (
        "kernels, apart from arithmetic at the peak",
        "Fewer and larger kernels help.",
    ),
    "idle_besides_share": ("an idle GPU", "Fewer launches an image help, as CUDA graphs do."),
    "unknown_share": ("not known", "No trace tells whether the GPU computes or idles."),
    "power_capped_share": ("power", "A higher limit or less work an image help."),
}
"""Parts of an epoch by the columns of their shares, and how to reduce each."""
REACHED = {
    "products": "Convolutions reach {} of the peak.",
    "element-wise": "Element-wise kernels reach {} of the memory’s bandwidth.",
}
"""What the kernels of a step reach, by their class."""
WHOLE = "start-up included: no epoch was printed"
OF_A_COMMAND = "A command does not tell its kernels; step and data_wait tell what it waits for."
MOST_WARNINGS = 5
"""How many warnings a terminal shows."""
CAPPED = 0.9
"""The share of the time at its power limit from which a GPU is limited by power."""


class Card(NamedTuple):
    """A card at the top of the page."""

    title: str
    headline: Markup
    text: Markup


def recommended(tables: StudyTables, cells: pd.DataFrame) -> Any | None:
    """Return the row of the cell to run, or None: one that several seeds show to learn.

    The cell of the shortest trainings to an accuracy may be none of `cells`.
    """
    trained = tables.trained_to_accuracy
    there = trained[(trained["reached"] == trained["seeds"]) & (trained["seeds"] > 1)]
    soonest = next(rows_of(there.sort_values("training_seconds")), None)
    return soonest or fastest(cells[learned(cells) & (cells["test_accuracy_count"] > 1)])


def fastest_that_learned(cells: pd.DataFrame) -> Any | None:
    """Return the fastest cell that learned by several seeds, or else by one, or None."""
    good = cells[learned(cells)]
    return fastest(good[good["test_accuracy_count"] > 1]) or fastest(good)


def marks(tables: StudyTables, cells: pd.DataFrame) -> dict[str, Any]:
    """Return the rows of the cells that the map frames, by why; none that learned nothing."""
    found = {
        "recommended": recommended(tables, cells),
        "fastest that learned as well, to 2 points": fastest_that_learned(cells),
    }
    if not any(found.values()) and cells["test_accuracy"].isna().all():
        found["fastest"] = fastest(cells)
    return {name: row for name, row in found.items() if row}


def cards(tables: StudyTables, cells: pd.DataFrame) -> list[Card]:
    """Return the four cards; none for a study without a timed cell."""
    quickest = fastest(cells)
    if quickest is None:
        return []
    best, learner = recommended(tables, cells), fastest_that_learned(cells)
    soonest = hasattr(best, "target_accuracy")
    first = _soonest(best, tables) if soonest else _run_this(learner, quickest)
    limited = next((row for row in rows_of(cells) if best and place(row) == place(best)), learner)
    return [first, _scaling(cells), _the_limit(tables, limited or quickest), _trust(tables, cells)]


def headline(tables: StudyTables, cells: pd.DataFrame) -> str:
    """Return the cards and what could not be measured, one per line, in ASCII for terminals."""
    lines = []
    for card in cards(tables, cells):
        first = card.text.striptags().partition(". ")[0]
        line = f"{card.title}: {card.headline.striptags()}, {first[0].lower()}{first[1:]}"
        lines.append(line.removesuffix("."))
    warned = tables.audit.groupby("message", sort=False)["gpus"].agg(["size", "first"])
    for message, size in warned["size"].head(MOST_WARNINGS).items():
        lines.append(f"Warning: {message} ({fmt.plural(size, 'cell')})")
    failed = by_status(cells[cells["status"] != "ok"])
    lines.append(f"Not measured: {failed or 'none'} of {fmt.plural(len(cells), 'cell')}")
    text = "\n".join(lines).translate(str.maketrans("×–−·’", "x--,'"))
    return text.encode("ascii", "replace").decode()


def _named(row: Any) -> Markup:
    return said("{}", Figure(label(row), of_cell(row)))


def _soonest(best: Any, tables: StudyTables) -> Card:
    text = said(
        "{} test accuracy soonest: {}–{} s of training in {} epochs, {}",
        printed(best, "target_accuracy", fmt.percent),
        *(printed(best, f"training_seconds_{end}", fmt.significant) for end in ("min", "max")),
        printed(best, "trained_epochs"),
        fmt.plural(best.seeds, "seed"),
    )
    trained = tables.trained_to_accuracy
    if pd.notna(best.speedup):
        times, base = printed(best, "to_accuracy_speedup"), fmt.gpus(trained["gpus"].min())
        text += said("; {} as fast as {} at the same global batch", times, base)
    text += said(". With start-up {} s", printed(best, "trained_run_seconds"))
    for fewer in rows_of(trained[trained["gpus"] < best.gpus]):
        sooner = "sooner " if fewer.run_seconds < best.run_seconds else ""
        seconds = printed(fewer, "trained_run_seconds")
        text += said(", {}on {}: {} s", sooner, fmt.gpus(fewer.gpus), seconds)
    return Card("Run this", _named(best), text + ".")


def _run_this(learner: Any | None, quickest: Any) -> Card:
    an_epoch: Figure | Markup = printed(quickest, "epoch_seconds", fmt.seconds)
    if quickest.whole:
        return Card("Fastest whole run", _named(quickest), said("{}, {}.", an_epoch, WHOLE))
    if learner is None:
        known = pd.notna(quickest.test_accuracy)
        why = (
            "No cell is shown to learn as well as its reference."
            if known
            else "No accuracy is known."
        )
        if quickest.unit and pd.notna(rate := quickest.images_per_second):
            fast = figure(fmt.significant(rate), quickest, "images_per_second", rate)
            an_epoch = said("{} {}/s, {}", fast, quickest.unit, an_epoch)
        return Card("Fastest", _named(quickest), said("{} an epoch. {}", an_epoch, why))
    count = learner.test_accuracy_count
    title = "Run this" if count > 1 else "Fastest that learned, one seed"
    text = said(
        "{} an epoch: the fastest that learns ({}{}).",
        printed(learner, "epoch_seconds", fmt.seconds),
        printed(learner, "test_accuracy"),
        f", {count:g} seeds" if count > 1 else "",
    )
    if learner.Index != quickest.Index:
        accuracy = printed(quickest, "test_accuracy")
        text += said(" Fastest of all: {}, {}, but {}.", _named(quickest), an_epoch, accuracy)
    return Card(title, _named(learner), text)


def _ends(cells: pd.DataFrame, quantity: str) -> Markup:
    """Return the least and the most of a quantity: `1.83–1.98×`, figures of these two cells."""
    ordered = cells.sort_values(quantity).iloc[[0, -1]]
    low, high = (printed(row, quantity) for row in rows_of(ordered))
    ends = said("{}–{}", replace(low, text=low.text.rstrip("× %")), high)
    return said("{}", high) if low.text == high.text else ends


def _scaling(cells: pd.DataFrame) -> Card:
    found = by_efficiency(cells)
    if not found:
        return Card("Scaling", said("not measured"), said("No cell on several GPUs has a speedup."))
    (name, best), *others = found
    gpus = int(best["gpus"].iloc[0])
    # A run of each has no verdict.
    words = set(best["verdict"]) or {""}
    title = {"faster": "Faster", "slower": "Slower", "": "Speedup"}.get(
        words.pop() if len(words) == 1 else "several", "Not always faster"
    )
    text = said("{}: {} efficient{}.", name, _ends(best, "efficiency"), _undecided(best))
    for other, rows in others[:3]:
        text += said(" {}: {}{}.", other, _ends(rows, "speedup"), _undecided(rows))
    text += said(" {}.", ", ".join(dict.fromkeys(best["scope"])))
    return Card(f"{title} on {fmt.gpus(gpus)}", _ends(best, "speedup"), text)


def _undecided(rows: pd.DataFrame) -> str:
    """Return `, 1 of 5 unclear, 2 the same`."""
    counts = rows["verdict"].value_counts()
    found = [f"{counts[word]} {word}" for word in ("unclear", "same") if word in counts]
    return "".join(f", {own} of {len(rows)}" for own in found)


def _the_limit(tables: StudyTables, chosen: Any) -> Card:
    shares = {name: share for name in PARTS if pd.notna(share := getattr(chosen, name))}
    if not shares:
        return Card("The limit is", said("not measured"), said("No peak was measured."))
    capped = chosen.power_capped_share >= CAPPED
    name = "power_capped_share" if capped else max(shares, key=lambda one: shares[one])
    if name == "unknown_share" and chosen.unit:
        return Card("The limit is", said("not known"), said(OF_A_COMMAND))
    words, advice = LIMITS[name]
    share = printed(chosen, name, fmt.percent)
    text = said("{} of an epoch of {}. {}", share, _named(chosen), advice)
    for row in rows_of(tables.step_classes.dropna(subset="reached")):
        if place(row) == place(chosen) and (sentence := REACHED.get(row.kernel_class)):
            reached = figure(fmt.percent(row.reached), row, row.kernel_class, row.reached)
            text += " " + said(sentence, reached)
    return Card("The limit is", said(words), text)


def _trust(tables: StudyTables, cells: pd.DataFrame) -> Card:
    """Return what repeats tell: a run's deviation, what it can show, and how machines differ."""
    found = Noise(tables.provenance, "epoch_seconds").spreads()
    if not found:
        why = "No run was repeated, so its noise is unknown and no ratio has an interval."
        return Card("Trust", said("1 run"), said(why))
    quietest = min(found, key=lambda one: one.deviation)
    head = figure(fmt.percent(quietest.deviation), None, "run_deviation", quietest.deviation)
    noisiest = max(found, key=lambda one: one.deviation)
    ends = [quietest, noisiest][: len({quietest.name, noisiest.name})]
    runs = fmt.whole_span(own.runs for own in ends)
    varies = " to ".join(f"± {fmt.percent(own.deviation)} ({own.name})" for own in ends)
    shown = " to ".join(fmt.percent(own.shows) for own in ends)
    apart = max(own.machines for own in found)
    machines = f", machines by up to {fmt.percent(apart)}" if apart > 1e-9 else ""
    text = said("One run varies by {}{}. {} runs each show {}.", varies, machines, runs, shown)
    count, changing = tables.provenance["seed"].nunique(), len(drifting(cells))
    text += said(" Accuracies: {}.", fmt.plural(count, "seed"))
    first = "".join(f", the first: {message}" for message in tables.audit["message"][:1])
    text += said(" Audit: {}{}.", fmt.plural(len(tables.audit), "warning"), first) if first else ""
    text += said(" Still changing: {} (~).", fmt.plural(changing, "cell")) if changing else ""
    return Card("Trust", said("± {} a run", head), text)
