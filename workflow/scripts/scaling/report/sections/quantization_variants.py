"""Part B's variants beside the stages: known mistakes, fewer bits, other choices at 8 bits."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from scaling.config.scheme import MISTAKES, STAGES, Mistake, Scheme
from scaling.core import numbers as fmt
from scaling.core.paired_accuracy import MeanDifference
from scaling.report.sections import quantization_columns as part_b
from scaling.report.table import Column, SectionPart, Table, TableCell, head, make_table, status
from scaling.tables.experiments.quantization_cost import (
    STANDARD_ERRORS,
    between,
    bits,
    cost,
    difference,
    low_bits,
    method,
)

SQNR = {
    "weight_sqnr_db": "of weights",
    "sqnr_before_relu_db": "of what a layer gives before its ReLU",
    "sqnr_after_relu_db": "of what a layer passes on",
    "propagated_sqnr_db": "of what has propagated",
}


@dataclass(frozen=True)
class Pair:
    """A mistaken variant's rows, and those of the sound one with the same options and seeds.

    `beside` is the mistaken minus the sound variant's accuracy, paired by image over the seeds;
    None without a sound one.
    """

    mistake: Mistake
    wrong: pd.DataFrame
    sound: pd.DataFrame
    beside: MeanDifference | None

    @property
    def in_accuracy(self) -> bool:
        """Whether accuracy reveals the mistake: `beside` is a loss beyond two standard errors."""
        return self.beside is not None and self.beside.errors < -STANDARD_ERRORS

    @property
    def difference(self) -> str | None:
        """Write `beside`."""
        return None if self.beside is None else difference(*self.beside)

    @property
    def diagnostics(self) -> str:
        """What reveals the mistake: `accuracy; SQNR (2 of 3 seeds)`."""
        seeds = self.sound["seed"].nunique()
        if not seeds:
            return "no sound variant of the same options to compare with"
        compared = self.wrong[self.wrong["seed"].isin(self.sound["seed"])]
        named = [name for names in compared["revealed_by"] for name in names.split("; ")]
        counts = Counter(name for name in named if name not in ("", "accuracy"))
        names = ["accuracy"] if self.in_accuracy else []
        names += [
            name if count == seeds else f"{name} ({count} of {seeds} seeds)"
            for name, count in counts.items()
        ]
        return "; ".join(names) or "none of the diagnostics"


def known_mistakes(table: pd.DataFrame, layers: pd.DataFrame, paired: pd.DataFrame) -> SectionPart:
    """What each mistake costs, which diagnostics reveal it, and which ones accuracy passes."""
    found = _pairs(table, paired)
    if not found:
        return SectionPart(missing="No known mistake was evaluated in this study.")
    notes = {pair.mistake: f"{pair.mistake}: {MISTAKES[pair.mistake]}" for pair in found}
    lines = pd.DataFrame({"pair": found})
    shown = make_table("Known mistakes", lines, MISTAKE_COLUMNS, notes=list(notes.values()))
    return SectionPart(_unseen(found, layers), [shown])


def _pairs(table: pd.DataFrame, paired: pd.DataFrame) -> list[Pair]:
    """Each mistaken variant with its sound one; the latter may have no rows."""
    quantized = table[table["stage"] != STAGES[0]]
    options = [option for option in Scheme.model_fields if option != "mistake"]
    found = []
    for name, wrong in quantized[quantized["mistake"] != ""].groupby("stage", sort=False):
        same = (quantized[options].astype(str) == wrong[options].iloc[0].astype(str)).all(axis=1)
        sound = quantized[same & (quantized["mistake"] == "")]
        sound = sound[sound["seed"].isin(wrong["seed"])].drop_duplicates("seed")
        beside = None if sound.empty else between(paired, str(name), sound["stage"].iloc[0])
        found.append(Pair(wrong["mistake"].iloc[0], wrong, sound, beside))
    return found


def _of_both(label: str, column: str, write: Callable[[float], str]) -> Column:
    """Show the mean of the mistaken variant, and below it that of the sound one."""
    return Column(
        label,
        lambda line: write(line.pair.wrong[column].mean()),
        detail=lambda line: "" if line.pair.sound.empty else write(line.pair.sound[column].mean()),
        group="below each figure that of the sound variant",
    )


MISTAKE_COLUMNS = [
    Column(
        "mistake",
        lambda line: line.pair.mistake,
        kind="head",
        detail=lambda line: fmt.plural(len(line.pair.wrong), "seed"),
    ),
    _of_both("accuracy, %", "accuracy_percent", "{:.2f}".format),
    _of_both("same class as float32, %", "agreement_percent", "{:.2f}".format),
    _of_both("lowest SQNR, dB", "sqnr_after_relu_db", fmt.significant),
    _of_both("propagated, dB", "propagated_sqnr_db", fmt.significant),
    _of_both("most clipped, calibration", "clipped_share_calibration", part_b.share),
    Column("difference to the sound variant, points", lambda line: line.pair.difference),
    Column("revealed by", lambda line: line.pair.diagnostics, kind="text"),
]


def _unseen(found: list[Pair], layers: pd.DataFrame) -> list[str]:
    """A sentence for each mistake that accuracy passes, or that there is none."""
    compared = [pair for pair in found if pair.beside is not None]
    passed = [pair for pair in compared if not pair.in_accuracy]
    if compared and not passed:
        return ["Accuracy reveals each of these mistakes."]
    return [
        f"Accuracy does not reveal {pair.mistake}: {cost(pair.wrong).difference} points to "
        f"float32, the sound variant {cost(pair.sound).difference}; from one to the other "
        f"{pair.difference}, paired by image ({fmt.plural(len(pair.sound), 'seed')}). "
        f"Revealed by: {pair.diagnostics}.{_noise(pair, layers)}"
        for pair in passed
    ]


def _noise(pair: Pair, layers: pd.DataFrame) -> str:
    """The loss of SQNR beside the sound variant over the layers, of each kind that has one.

    With the lowest of a layer in either variant.
    """
    wrong, sound = (
        layers[layers["stage"] == rows["stage"].iloc[0]].set_index(["seed", "layer"])[list(SQNR)]
        for rows in (pair.wrong, pair.sound)
    )
    lost = sound.astype(float) - wrong.astype(float)
    words = [
        f"that {kind} is {_loss(lost[column].dropna())} (lowest of a layer "
        f"{fmt.significant(wrong[column].min())} dB, of the sound variant "
        f"{fmt.significant(sound[column].min())} dB)"
        for column, kind in SQNR.items()
        if lost[column].max() >= 0.1
    ]
    return f" Beside the sound variant’s SQNR, {', '.join(words)}." if words else ""


def _loss(drops: pd.Series) -> str:
    """What layers lose, by (seed, layer), in dB; a negative loss is a gain."""
    least, most = (f"{abs(drop):.1f}" for drop in (drops.min(), drops.max()))
    if f"{drops.min():.1f}" == f"{drops.max():.1f}":
        return f"{most} dB lower in every layer"
    gain = f"{least} dB higher in {drops.idxmin()[1]}"
    other = gain if drops.min() < 0 else f"{least} dB at least"
    return f"{most} dB lower at most, in {drops.idxmax()[1]}, {other}"


def at_8_bits(table: pd.DataFrame) -> SectionPart:
    """Every other sound variant of 8 bits beside the last stage."""
    eight = table[
        (table["weight_bits"] == 8)
        & (table["activation_bits"].isna() | (table["activation_bits"] == 8))
        & (table["mistake"] == "")
    ]
    last = eight[eight["stage"] == STAGES[-1]]
    others = eight[~eight["stage"].isin(STAGES)]
    if others.empty:
        return SectionPart(missing="This study has no other variants of 8 bits.")
    first = others.drop_duplicates("stage").itertuples()
    shown = make_table(
        "Other choices at 8 bits",
        part_b.by_group(pd.concat([last, others]), "stage"),
        CHOICE_COLUMNS,
        notes=[f"{row.stage}: {method(row)}" for row in first],
    )
    return SectionPart(_best(last, others), [shown])


LOWEST_SQNR = "lowest SQNR of a layer, dB"
CHOICE_COLUMNS = [
    Column("variant", "stage", kind="head", detail=lambda line: fmt.plural(len(line.rows), "seed")),
    *(part_b.ACCURACY, part_b.WITH_ERROR, part_b.AGREEMENT),
    part_b.over_seeds("weights", "weight_sqnr_db", group=LOWEST_SQNR),
    part_b.over_seeds("activations", "sqnr_after_relu_db", group=LOWEST_SQNR),
    part_b.over_seeds("propagated", "propagated_sqnr_db", group=LOWEST_SQNR),
    part_b.mean("most clipped, test", "clipped_share_test", part_b.share),
    part_b.mean("times smaller", "compression", fmt.times),
]


def _best(last: pd.DataFrame, others: pd.DataFrame) -> list[str]:
    """The variant that agrees most with float32, beside the last stage on the same seeds."""
    others = others[others["seed"].isin(last["seed"])]
    if others.empty:
        return []
    means = others.groupby("stage")["agreement_percent"].mean()
    best = str(means.idxmax())
    seeds = others.loc[others["stage"] == best, "seed"]
    reference = last.loc[last["seed"].isin(seeds), "agreement_percent"].mean()
    return [
        f"Of these {best} puts most images in the class that float32 puts them in: "
        f"{means.max():.1f} %, against {reference:.1f} % with {STAGES[-1]} on the same "
        f"{'seed' if len(seeds) == 1 else 'seeds'}."
    ]


def fewer_bits(table: pd.DataFrame) -> SectionPart:
    """Bits by method: the difference to float32 and the size."""
    low = low_bits(table)
    if low.empty:
        return SectionPart(missing="No variant of this study has fewer than 8 bits.")
    methods = [str(name) for name in low["method"].unique()]
    widths = ["weight_bits", "activation_bits"]
    lines = part_b.by_group(low.sort_values(widths, ascending=False), *widths)
    shown = Table(
        title="Accuracy and size by bits",
        groups=[("", 1), *((name, len(METHOD_COLUMNS)) for name in methods)],
        columns=["bits", *([column.label for column in METHOD_COLUMNS] * len(methods))],
        rows=[
            [head(bits(line)), *(cell for name in methods for cell in _of_method(line.rows, name))]
            for line in lines.itertuples()
        ],
    )
    return SectionPart([_smallest(name, low[low["method"] == name]) for name in methods], [shown])


METHOD_COLUMNS = [
    replace(part_b.WITH_ERROR, label="points to float32"),
    Column(
        "packed",
        lambda line: line.rows["packed_bytes"].mean(),
        fmt.data,
        detail=lambda line: fmt.times(line.rows["compression"].mean()),
    ),
]


def _of_method(rows: pd.DataFrame, name: str) -> list[TableCell]:
    """The cells of a method's first variant among `rows`."""
    for line in part_b.by_group(rows[rows["method"] == name], "stage").itertuples():
        return [column.cell(line) for column in METHOD_COLUMNS]
    return [status("not evaluated", len(METHOD_COLUMNS))]


def _smallest(name: str, variants: pd.DataFrame) -> str:
    """The smallest variant of a method below 8 bits whose loss is within noise, if any."""
    fewer = variants[(variants["weight_bits"] < 8) | (variants["activation_bits"] < 8)]
    found = [rows for _, rows in fewer.groupby("stage", sort=False)]
    within = [rows for rows in found if cost(rows).within_noise]
    rows = min(within or found, key=lambda rows: rows["packed_bytes"].mean())
    row: Any = next(rows.itertuples())
    smallest = cost(rows)
    said = (
        "the smallest network below 8 bits within noise of float32 is"
        if within
        else "no network below 8 bits is within noise of float32; the smallest is"
    )
    return (
        f"With {name} {said} {bits(row)}: {smallest.difference} points "
        f"({fmt.plural(smallest.seeds, 'seed')}), {fmt.times(row.compression)} smaller."
    )
