"""The first screen of the report: the finding, how sure it is, and what to do."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import pandas as pd
from markupsafe import Markup

from scaling.claims.claim import label, most_gpus
from scaling.claims.scaling import PARTS, by_efficiency
from scaling.core import numbers as fmt
from scaling.core.grid import REFERENCE_BATCH
from scaling.report.cells import by_status, cell_id, drifting, fastest, training_id
from scaling.report.planning import LAB, from_the_lab, recommended, trainings
from scaling.report.quantities import printed
from scaling.report.table import Figure, figure, of_cell, said
from scaling.tables.noise import Noise
from scaling.tables.schema import StudyTables, on_cpu, rows_of

LIMITS = {
    "loading_share": ("data wait", "Use more loader workers, or keep images on the GPU"),
    "communication_share": ("messages alone", "Send fewer messages per image"),
    "utilization": ("matrix products at the GPU’s peak", "Only faster GPUs or less work help"),
    "slower_share": ("kernels below the peak", "Use fewer and larger kernels"),
    "idle_besides_share": ("an idle GPU", "Launch fewer kernels per image, as CUDA graphs do"),
    "power_capped_share": ("power", "Raise the power limit, or do less work per image"),
}
"""What takes an epoch's time by the columns of its shares, and how to reduce each."""
MOST_WARNINGS = 5
"""How many warnings a terminal shows."""
CAPPED = 0.9
"""The share of the time at its power limit from which a GPU is limited by power."""
CPU = Markup(
    "<b>Processes on a CPU show that everything works; the answers to Q4 to Q7 and Part B hold for "
    "this small network. Their times say nothing about GPUs.</b> Where other pages say GPU, this "
    "one means a process on the CPU."
)


class Card(NamedTuple):
    """A card at the top of the page; `bars` are names, widths in percent and texts."""

    kind: str
    title: str
    headline: Markup
    text: Markup
    bars: Sequence[tuple[str, float, str]] = ()


def lead(study: StudyTables, cells: pd.DataFrame) -> Markup:
    """Return the finding, in bold, and what explains it; "" for a study that has none."""
    if on_cpu(study.provenance):
        return CPU
    found, lab = list[Markup](), from_the_lab(study)
    if len(lab):
        words = "On one GPU {} trains {} as fast as the lab’s way."
        found.append(said(words, lab["recipe"].iloc[0], _factor(lab["factor"])))
    for row in _scaled(cells):
        found.append(said("{} train {}.", fmt.gpus(row.gpus), _times_as_fast(row)))
    long = trainings(study)["break_even"].dropna()
    if len(long):
        found.append(said("With start-up that pays from {} epochs on.", f"{long.min():.0f}"))
    return said("<b>{}</b> {}", Markup(" ").join(found), _why(cells)) if found else Markup("")


def worth(study: StudyTables) -> Markup:
    """Return what more GPUs gain and cost in the trainings to an accuracy; "" without any."""
    one, *others = [*rows_of(trainings(study))] or [None]
    found = list[Markup]()
    for many in others:
        seconds = (printed(row, "trained_run_seconds") for row in (one, many))
        words = "To {}, {} take {} s and {} {} s, start-up included."
        target = printed(one, "target_accuracy", fmt.percent)
        found.append(
            said(
                words, target, fmt.gpus(one.gpus), next(seconds), fmt.gpus(many.gpus), next(seconds)
            )
        )
        if many.break_even > 0:
            long = printed(many, "break_even")
            found.append(said("From {} epochs on {} finish first.", long, fmt.gpus(many.gpus)))
        more = (getattr(many, name) / getattr(one, name) - 1 for name in ("gpu_seconds", "joules"))
        costs = "They use {} more GPU-seconds and {} more energy."
        found.append(said(costs, *map(fmt.percent, more)))
    return Markup(" ").join(found)


def _why(cells: pd.DataFrame) -> Markup:
    """Return what the lab's way waits for on one GPU, and how much the fastest recipe computes."""
    alone = cells[(cells["gpus"] == 1) & (cells["status"] == "ok")]
    lab = alone[alone["recipe"] == LAB].dropna(subset="loading_share")
    busy = alone[(alone["recipe"] != LAB) & alone["idle_share"].notna()]
    found = list[Markup]()
    if len(lab):
        words = 'The <dfn title="{}">lab’s way</dfn> ({}) waits for data for {} of an epoch.'
        what = "the training as the lab hands it out: PyTorch’s standard parts"
        found.append(said(words, what, LAB, _span(lab, "loading_share")))
    for row in rows_of(busy.nlargest(1, "idle_share")):
        least = figure(fmt.percent(1 - row.idle_share), row, "busy_share", 1 - row.idle_share)
        found.append(said("With {} a kernel runs for at least {} of it.", row.recipe, least))
    return Markup(" ").join(found)


def cards(study: StudyTables, cells: pd.DataFrame) -> list[Card]:
    """Return the cards of what the study can tell; none for a study without a timed cell."""
    if fastest(cells) is None:
        return []
    if on_cpu(study.provenance):
        return [_ran(study, cells), *_how_sure(study, cells), _elsewhere()]
    found = [_from_the_lab(study), _throughput(cells), _more_gpus(study, cells)]
    return [*filter(None, found), *_how_sure(study, cells), *_to_do(study, cells)]


def headline(study: StudyTables, cells: pd.DataFrame) -> str:
    """Return the cards and what could not be measured, one per line, in ASCII for terminals."""
    lines = []
    for card in cards(study, cells):
        first = card.text.striptags().partition(". ")[0].removesuffix(".")
        lines.append(f"{card.title}: {card.headline.striptags()}. {first}".removesuffix(". "))
    warned = study.audit.groupby("message", sort=False)["gpus"].agg(["size", "first"])
    for message, size in warned["size"].head(MOST_WARNINGS).items():
        lines.append(f"Warning: {message} ({fmt.plural(size, 'configuration')})")
    failed = by_status(cells[cells["status"] != "ok"])
    count = fmt.plural(len(cells), "configuration")
    lines.append(f"Not measured: {failed or 'none'} of {count}")
    text = "\n".join(lines).translate(str.maketrans("×–−·’±", "x--,'+"))
    return text.encode("ascii", "replace").decode()


def _named(row: Any) -> Markup:
    """Return a cell's name, with a link to its page."""
    anchor = training_id(row) if hasattr(row, "target_accuracy") else cell_id(row)
    return said('<a href="#{}">{}</a>', anchor, Figure(label(row), of_cell(row)))


def _span(cells: pd.DataFrame, quantity: str) -> Markup:
    """Return the least and the most of a quantity: `1.83 to 1.98×`, figures of these two cells."""
    ordered = cells.sort_values(quantity).iloc[[0, -1]]
    low, high = (printed(row, quantity) for row in rows_of(ordered))
    return said("{}", high) if low.text == high.text else said("{} to {}", low, high)


def _factor(values: pd.Series) -> str:
    ends = dict.fromkeys(fmt.significant(end, 2) for end in (values.min(), values.max()))
    return f"{' to '.join(ends)}×"


def _from_the_lab(study: StudyTables) -> Card | None:
    """Return the factor from the lab's way, on each machine that ran both."""
    found = from_the_lab(study)
    if found.empty:
        return None
    name = str(found["recipe"].iloc[0])
    ends = found.loc[[*dict.fromkeys([found["factor"].idxmin(), found["factor"].idxmax()])]]
    longest, bars = ends["lab"].max(), list[tuple[str, float, str]]()
    for row in rows_of(ends):
        for recipe, value in (("lab’s way", row.lab), (name, row.tuned)):
            wide = round(100 * value / longest, 1)
            bars.append((f"{recipe}, machine {row.machine}", wide, fmt.seconds(value)))
    machines = fmt.plural(len(found), "machine")
    text = said("An epoch at {} images per step, on {} that ran both.", REFERENCE_BATCH, machines)
    if found["training"].notna().all():
        text += said(" Without data loading: {} as fast.", _factor(found["training"]))
    title = f"{name.capitalize()} instead of the lab’s way, one GPU"
    return Card("lab", title, said("{} as fast", _factor(found["factor"])), text, bars)


def _throughput(cells: pd.DataFrame) -> Card | None:
    """Return the samples a second of a command, None for recipes of this project."""
    best = fastest(cells)
    if not best.unit or pd.isna(best.images_per_second):
        return None
    rates = cells.dropna(subset="images_per_second")
    most = rates["images_per_second"].max()
    bars = [
        (f"{row.gpus:g} × {row.batch_size:g}", 100 * row.images_per_second / most, shown.text)
        for row in rows_of(rates.head(4))
        for shown in [printed(row, "images_per_second")]
    ]
    title = f"Throughput, {best.unit} per second"
    text = said("{} an epoch with {}.", printed(best, "epoch_seconds", fmt.seconds), _named(best))
    return Card("rate", title, said("{}", printed(best, "images_per_second")), text, bars)


def _scaled(cells: pd.DataFrame) -> list[Any]:
    """Return the cell of the most efficient configuration, at the lab's batch size or the least."""
    found = by_efficiency(cells)[:1]
    sizes = [rows.assign(far=rows["batch_size"] != REFERENCE_BATCH) for _, rows in found]
    return [next(rows_of(rows.sort_values(["far", "batch_size"]))) for rows in sizes]


def _times_as_fast(row: Any) -> Markup:
    ends = f" ({fmt.span(row.speedup_low, row.speedup_high)})" * (row.speedup_low > 0)
    if row.verdict in ("same", "unclear"):
        return said("no faster than one that these runs can show{}", ends)
    return said("{}{} as fast as one", printed(row, "speedup"), ends)


def _more_gpus(study: StudyTables, cells: pd.DataFrame) -> Card | None:
    """Return the speedup of the most efficient configuration, and what it costs in accuracy."""
    for row in _scaled(cells):
        gpus = fmt.gpus(row.gpus)
        text = said("{} images per GPU, {}.", row.batch_size, row.scope)
        one = cells[(cells["recipe"] == row.recipe) & (cells["gpus"] == 1)]
        one = one[one["batch_size"] == row.batch_size].dropna(subset="test_accuracy")
        if len(one) and pd.notna(row.test_accuracy):
            ends = (printed(each, "test_accuracy") for each in (next(rows_of(one)), row))
            grown = "The global batch is {} times as large: accuracy goes from {} to {}."
            text += " " + said(grown, int(row.gpus), *ends)
        for whole in rows_of(most_gpus(trainings(study).dropna(subset="break_even"))):
            times = printed(whole, "fixed_global_batch_speedup")
            text += said(" At one global batch of {}: {}.", int(whole.global_batch), times)
        for name, rows in by_efficiency(cells)[1:3]:
            text += said(" {}: {}.", name, _span(rows, "speedup"))
        undecided = row.verdict in ("same", "unclear")
        fast = said("{} as fast", printed(row, "speedup"))
        head = said("no difference shown") if undecided else fast
        return Card("gpus", f"{gpus} instead of 1, {row.recipe}/{row.strategy}", head, text)
    return None


def _how_sure(study: StudyTables, cells: pd.DataFrame) -> list[Card]:
    """Return what repeats tell: a run's deviation, what it can show, and how machines differ."""
    found = sorted(
        Noise(study.provenance, "epoch_seconds").spreads(), key=lambda one: one.deviation
    )
    if not found:
        why = "No run was repeated, so no ratio has an interval. Add seeds or <code>repeats</code>."
        return [Card("sure", "How sure", said("one run each"), Markup(why))]
    ends = list(dict.fromkeys([found[0], found[-1]]))
    heads = [
        said(
            "{} <small>{}</small>",
            figure(f"± {fmt.percent(own.deviation)}", None, own.name, own.deviation),
            own.name,
        )
        for own in ends
    ]
    runs = fmt.whole_span(own.runs for own in ends)
    shown = " or ".join(fmt.percent(own.shows) for own in ends)
    apart = max(own.machines for own in found)
    machines = f" Machines differ by up to {fmt.percent(apart)}." if apart > 1e-9 else ""
    words = "Standard deviation of a run. The least difference that {} runs of each can show is {}."
    text = said(words, runs, shown)
    changing = len(drifting(cells))
    late = f" Not at steady state: {fmt.plural(changing, 'configuration')} (~)." if changing else ""
    warned = f" {fmt.plural(len(study.audit), 'warning')}." if len(study.audit) else ""
    return [
        Card(
            "sure",
            "How sure",
            Markup("<br>").join(heads),
            said("{}{}{}{}", text, machines, late, warned),
        )
    ]


def _to_do(study: StudyTables, cells: pd.DataFrame) -> list[Card]:
    """Return what to run and what limits it, or else what limits the fastest cell, if known."""
    best = recommended(study, cells)
    if hasattr(best, "target_accuracy"):
        return [_train(best, trainings(study))]
    chosen = best or fastest(cells)
    limit = _limit(study, chosen)
    if best:
        accuracy = printed(best, "test_accuracy")
        why = "the shortest of those that learn as well as their reference"
        seeds = fmt.plural(best.test_accuracy_count, "seed")
        seconds = printed(best, "epoch_seconds", fmt.seconds)
        text = said("{} an epoch, {} ({}, {}). {}", seconds, why, accuracy, seeds, limit)
        return [Card("do", "What to do", said("Train {}", _named(best)), text)]
    if not limit:
        return []
    return [Card("do", "What to do", said("{}", _action(study, chosen)), limit)]


def _train(best: Any, others: pd.DataFrame) -> Card:
    """Return the card of a training to an accuracy."""
    text = said(
        "{} test accuracy after {} epochs, in {} of {} runs: {} s of training, {} s with start-up.",
        printed(best, "target_accuracy", fmt.percent),
        printed(best, "trained_epochs"),
        int(best.reached),
        int(best.seeds),
        printed(best, "to_accuracy_seconds"),
        printed(best, "trained_run_seconds"),
    )
    for row in rows_of(others[others["gpus"] > best.gpus]):
        text += said(" {} take {} s", fmt.gpus(row.gpus), printed(row, "trained_run_seconds"))
        if row.break_even > 0:
            pays = ', and finish first <a href="#gpus">from {} epochs on</a>'
            text += said(pays, printed(row, "break_even"))
        text += "."
    share = best.startup_seconds / best.run_seconds
    if share > 0.5:
        text += said(" Start-up limits it: {} of the job.", fmt.percent(share))
    return Card("do", "What to do", said("Train {}", _named(best)), text)


def _most(study: StudyTables, chosen: Any) -> str:
    """Return the column of what takes most of an epoch, or "" if unknown."""
    shares = {name: share for name in PARTS if pd.notna(share := getattr(chosen, name))}
    name = max(shares, key=lambda one: shares[one], default="")
    name = "power_capped_share" if shares and chosen.power_capped_share >= CAPPED else name
    return name if name in LIMITS else ""


def _action(study: StudyTables, chosen: Any) -> str:
    return LIMITS[_most(study, chosen)][1]


def _limit(study: StudyTables, chosen: Any) -> Markup:
    """Return what limits a cell, and how to reduce it; "" if unknown."""
    if not (name := _most(study, chosen)):
        return Markup("")
    words, advice = LIMITS[name]
    share = printed(chosen, name, fmt.percent)
    return said("Its limit is {}: {} of an epoch. {}.", words, share, advice)


def _ran(study: StudyTables, cells: pd.DataFrame) -> Card:
    fine = cells["status"].isin(["ok", "infeasible"]).sum()
    parts = {"timing": "scaling", "remedies": "accuracy", "sampler": "Q5 to Q7"}
    parts["quantization"] = "int8"
    there = ", ".join(words for name, words in parts.items() if len(getattr(study, name)))
    head = said("{} of {} configurations", int(fine), len(cells))
    text = said("Records, tables and figures of {}. {}.", there, by_status(cells).capitalize())
    return Card("ran", "Did everything run?", head, text)


def _elsewhere() -> Card:
    text = "<code>make study</code> there gives this page with results. To see one now, without a "
    text += "GPU: <code>make replay STUDY=h100x2</code>."
    return Card("do", "What to do", said("Measure on a machine with GPUs"), Markup(text))
