"""Make the first screen of the report: main results, their noise, and a recommendation."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pandas as pd
from markupsafe import Markup

from scaling.claims.claim import batch, label, nearest, span
from scaling.claims.scaling import PARTS, by_efficiency
from scaling.core import numbers as fmt
from scaling.core.errors import printable
from scaling.core.grid import REFERENCE_BATCH
from scaling.report.cells import by_status, fastest
from scaling.report.planning import LAB, changes, from_the_lab, how_many_gpus, recommended
from scaling.report.table import Figure, cell_id, fill, of_cell, printed
from scaling.tables.noise import Noise, scope
from scaling.tables.schema import StudyTables, on_cpu, rows_of

ADVICE = {
    "loading_share": "Use more loader workers, or keep images on the GPU",
    "waiting_share": "Give each rank cores of its own",
    "utilization": "Only faster GPUs or less work help",
}
"""Advice that shortens an epoch, by the column of its largest part. Not all parts have any."""
MOST_WARNINGS = 5
CPU = Markup(
    "<b>A scaling study is for people who train on several GPUs. Processes on a CPU (here called "
    "GPUs) show that every part works. {}Times say nothing about GPUs.</b> To measure: <code>make "
    "study</code> on GPUs. To see such a page now: <code>make replay STUDY=h200x2</code>."
)
LEARNED = Markup("Q5 to Q7 and Part B are independent of speed. ")


class Card(NamedTuple):
    """A card at the top of the page.

    Each of `bars` is (name, length, text). `result` is a sentence for the page's first paragraph.
    """

    kind: str
    title: str
    headline: Markup
    text: Markup
    bars: Sequence[tuple[str, float, str]] = ()
    result: Markup = Markup("")


def lead(study: StudyTables, cells: pd.DataFrame, cards: Sequence[Card]) -> Markup:
    """Return the main results in bold, "" if there are none; for a CPU study, a fixed text."""
    if on_cpu(study.provenance):
        return CPU.format(LEARNED if len(study.sampler) and len(study.quantization) else "")
    found = [card.result for card in cards if card.result]
    for row in rows_of(how_many_gpus(study, cells).dropna(subset="break_even_min").tail(1)):
        words = "With an equal global batch {0} GPUs ({1}) finish first <a href=#gpus>{2}</a>."
        if row.epochs < row.break_even_min:
            words = "Once compiled, one" if row.run_cold_seconds > 0 else "One"
            words += " GPU ends the {3} epochs to {4} first; {0} GPUs ({1}) would "
            words += "<a href=#gpus>{2}</a>."
        to = printed(row, "epochs"), printed(row, "target_accuracy", fmt.percent)
        found.append(fill(words, int(row.gpus), label(row), _pays(row), *to))
    return fill("<b>{}</b>", Markup(" ").join(found)) if found else Markup("")


def cards(study: StudyTables, cells: pd.DataFrame) -> list[Card]:
    """Return the cards for which a study has data, or [] if nothing was timed on a GPU."""
    best = fastest(cells)
    if best is None or on_cpu(study.provenance):
        return []
    first = [
        *_from_the_lab(study, cells),
        *_throughput(best),
        *_more_gpus(cells, best.recipe),
    ]
    return [*first, _how_sure(study, cells), *_to_do(study, cells, best)]


def headline(study: StudyTables, cells: pd.DataFrame, cards: Sequence[Card]) -> str:
    """Return ASCII text for a terminal: cards, warnings, and number of configurations by status."""
    lines = [lead(study, cells, cards).striptags()] * on_cpu(study.provenance)
    for card in cards:
        first = card.text.striptags().partition(". ")[0].removesuffix(".")
        head = card.headline.replace("<br>", "; ").striptags()
        lines.append(f"{card.title}: {head}. {first}".removesuffix(". "))
    for message, rows in [*study.audit.groupby("message", sort=False)][:MOST_WARNINGS]:
        others = f" and {len(rows) - 1} more" * (len(rows) > 1)
        lines.append(f"Warning: {message} ({label(next(rows_of(rows)))}{others})")
    count = f"{fmt.plural(len(cells), 'configuration')}: {by_status(cells)}"
    lines += [count] if len(cells) else []
    text = printable("\n".join(lines)).replace("± ", "+-")
    text = text.translate(str.maketrans("×–−·’", "x--,'"))
    return text.encode("ascii", "replace").decode()


def _pays(row: Any) -> str:
    """Return the training length from which on a row ends before one GPU: `from 38 epochs on`.

    If machines differ, their range follows: ` at the latest (1–38 by machine)`.
    """
    apart = f" at the latest ({printed(row, 'break_even')} by machine)"
    apart *= bool(row.break_even_min < row.break_even_max)
    return f"from {fmt.plural(row.break_even_max, 'epoch')} on{apart}"


def _named(row: Any) -> Markup:
    return fill('<a href="#{}">{}</a>', cell_id(row), Figure(label(row), of_cell(row)))


def _from_the_lab(study: StudyTables, cells: pd.DataFrame) -> Iterator[Card]:
    """Yield a card that compares the fastest recipe with the lab's recipe (`LAB`), if any."""
    found = from_the_lab(study)
    for row in rows_of(found.head(1)):
        alone = cells[(cells["gpus"] == 1) & (cells["batch_size"] == REFERENCE_BATCH)]
        pair = alone[alone["recipe"].isin([LAB, row.recipe])]
        bars = [
            (own.recipe, own.epoch_seconds, f"{printed(own, 'epoch_seconds')} s")
            for own in rows_of(pair)
        ]
        machines = f"range over {len(found)} machines"
        if len(found) == 1:
            machines = scope(pair["runs"].min(), {*found.index}, unknown=True)
        text = fill("{} images per step, {}.", REFERENCE_BATCH, machines)
        text += _changed(study)
        title = f"{row.recipe.capitalize()} instead of {LAB}, 1 GPU"
        factor = span(found["factor"], lambda ratio: f"{fmt.significant(ratio, 2)}×")
        result = fill(
            "On one GPU {} trains {} as fast as the lab’s way ({}).", row.recipe, factor, LAB
        )
        yield Card("lab", title, fill("{} as fast", factor), text, bars, result)


def _changed(study: StudyTables) -> Markup:
    """Return text on the speedup of each recipe over the one before it; "" if unknown."""
    rows = changes(study).query(f"batch_size == {REFERENCE_BATCH}")
    if rows.empty:
        return Markup("")
    ends = rows.set_index("recipe")[["factor_min", "factor_max"]]
    steps = ", ".join(f"{recipe} {span(own, fmt.times)}" for recipe, own in ends.iterrows())
    least, most = rows["common_machines"].agg(["min", "max"])
    of = f"{least:g} to " * (least < most) + fmt.plural(most, "machine")
    return fill(" Speedup over the recipe before ({}): {}.", of, steps)


def _throughput(best: Any) -> Iterator[Card]:
    """Yield a card on the samples per second of `best`, the fastest row, if it is of a command."""
    if best.unit and pd.notna(best.images_per_second):
        epoch = printed(best, "epoch_seconds", fmt.seconds)
        text = fill("{} an epoch with {}.", epoch, _named(best))
        head = fill("{}", printed(best, "images_per_second"))
        yield Card("rate", f"Throughput, {best.unit} per second", head, text)


def _more_gpus(cells: pd.DataFrame, recipe: str) -> Iterator[Card]:
    """Yield a card on the speedup at the batch size nearest to 128; nothing without a speedup.

    The card is on the most efficient strategy of `recipe` or, if `recipe` has none, of all recipes.
    """
    preferred = by_efficiency(cells[cells["recipe"] == recipe])
    for _, rows in (preferred or by_efficiency(cells))[:1]:
        row = next(rows_of(nearest(rows)))
        text = fill("Batch {} per GPU, {}.", row.batch_size, row.scope)
        if pd.notna(row.delay_seconds):
            share = fmt.percent(max(0, row.exchange_share))
            text += fill(" Communication takes {} of training time.", share)
        same = cells[(cells["recipe"] == row.recipe) & cells["strategy"].isin(["", row.strategy])]
        split = same.query("gpus == @row.gpus and gpus * batch_size == @row.batch_size")
        for each in rows_of(split.dropna(subset="fixed_global_batch_speedup")):
            strong = printed(each, "fixed_global_batch_speedup")
            words = " Same global batch ({} × {}): {}."
            text += fill(words, int(each.gpus), int(each.batch_size), strong)
        pair = same[same["batch_size"] == row.batch_size].sort_values("gpus")
        one = next(rows_of(pair[pair["gpus"] == 1].dropna(subset="test_accuracy")), None)
        shown = row.difference_high < 0 or row.difference_low > 0
        if one and shown:
            reached = (printed(each, "test_accuracy") for each in (row, one))
            grown = " Accuracy with {} times the global batch: {}, not {}."
            text += fill(grown, int(row.gpus), *reached)
        # Epochs of a command may differ in their samples.
        rated = row.unit and pd.notna(row.images_per_second)
        name, unit = ("images_per_second", f"{row.unit}/s") if rated else ("epoch_seconds", "s")
        bars = [
            (fmt.gpus(own.gpus), getattr(own, name), f"{printed(own, name)} {unit}")
            for own in rows_of(pair.dropna(subset=name))
        ]
        ends = f" ({fmt.span(row.speedup_low, row.speedup_high)})" * (row.speedup_low > 0)
        head = fill("{} as fast", printed(row, "speedup"))
        verb = fill("{}{} as fast as one", printed(row, "speedup"), ends)
        if row.verdict in ("same", "unclear"):
            head = fill("no difference shown")
            verb = fill("no faster than one that these runs can show{}", ends)
        title = f"{fmt.gpus(row.gpus)} instead of 1, {row.recipe}/{row.strategy}"
        result = fill("{} train {} ({}, {})", fmt.gpus(row.gpus), verb, row.recipe, batch(row))
        result += fill(": {}.", row.note) if row.note else Markup(".")
        yield Card("gpus", title, head, text, bars, result)


def _how_sure(study: StudyTables, cells: pd.DataFrame) -> Card:
    """Return a card on the noise of epoch times and the smallest difference that runs reveal."""
    found = [*rows_of(Noise(study.provenance, "epoch_seconds").spreads())]
    ends = list(dict.fromkeys([*found[:1], *found[-1:]]))
    heads = [fill("± {} <small>{}</small>", fmt.percent(one.deviation), one.name) for one in ends]
    words = "Standard deviation of a run. {} can show differences above {}."
    shown = " and ".join(fmt.percent(own.shows) for own in ends)
    counts = fmt.whole_span(own.runs for own in ends)
    text = fill(words, f"{counts} run{'s' * (counts != '1')}", shown)
    if not found:
        heads = [fill("epoch times: one run each")]
        text = Markup("Their ratios have no interval. Add seeds or <code>repeats</code>.")
    if changing := cells["unsettled"].sum():
        text += fill(" {} not settled.", fmt.plural(changing, "configuration"))
    if warnings := len(study.audit):
        text += fill(" {}.", fmt.plural(warnings, "warning"))
    return Card("sure", "How sure", Markup("<br>").join(heads), text)


def _to_do(study: StudyTables, cells: pd.DataFrame, shortest: Any) -> list[Card]:
    """Return [a card] that says what to do, or [] if nothing is known.

    The card names the recommended configuration. Without a recommendation, it has advice on the
    largest part of an epoch of `shortest`, the fastest configuration.
    """
    best: Any = recommended(study, cells)
    head = fill("Train {}", _named(best)) if best else Markup("")
    if hasattr(best, "target_accuracy"):
        words = "{} accuracy in {} epochs, {} of {} runs: {} s of training{}{}."
        target, trained = printed(best, "target_accuracy", fmt.percent), "training_seconds"
        runs = printed(best, "epochs"), int(best.reached), int(best.seeds), printed(best, trained)
        whole = fill(", {} s the whole run", printed(best, "run_seconds")) * (best.run_seconds > 0)
        cold = fill(", {} s when compiling", fmt.significant(best.run_cold_seconds))
        cold *= bool(best.run_cold_seconds > 0)
        return [Card("do", "What to do", head, fill(words, target, *runs, whole, cold))]
    chosen: Any = best or shortest
    shares = {name: share for name in PARTS if pd.notna(share := getattr(chosen, name))}
    limit = max(shares, key=lambda one: shares[one], default="")
    text, advice = Markup(""), ADVICE.get(limit, "")
    if limit not in ("", "unknown_share"):
        text = fill(" {} of an epoch: {}.", printed(chosen, limit, fmt.percent), PARTS[limit])
    if not best:
        card = Card("do", "What to do", fill("{}", advice), fill("{}:{}", _named(chosen), text))
        return [card] * bool(advice)
    words = " No faster one of another global batch is shown to be as accurate ({}, {})."
    seeds = fmt.plural(best.test_accuracy_count, "seed")
    best_of = fill("{} an epoch.", printed(best, "epoch_seconds", fmt.seconds))
    best_of += fill(words, printed(best, "test_accuracy"), seeds)
    many = how_many_gpus(study, cells).dropna(subset="break_even_min")
    same = many["gpus"] * many["batch_size"] == best.gpus * best.batch_size
    for row in rows_of(many[same & (many["recipe"] == best.recipe)].tail(1)):
        best_of += fill(" With start-up, {} finishes first {}.", label(row), _pays(row))
    text += fill(" {}.", advice) * bool(advice)
    return [Card("do", "What to do", head, best_of + text)]
