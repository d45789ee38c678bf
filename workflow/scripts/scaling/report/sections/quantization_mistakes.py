"""Part B's known mistakes: each beside the sound variant of the same weights."""

from collections import Counter
from dataclasses import dataclass

import pandas as pd

from scaling.config.scheme import MISTAKES, STAGES, Mistake, Scheme
from scaling.core import numbers as fmt
from scaling.core.paired_accuracy import MeanDifference
from scaling.report.sections.ledger import decibels, share
from scaling.report.table import SectionPart, Table, TableCell, text
from scaling.tables.experiments.quantization_cost import (
    STANDARD_ERRORS,
    Cost,
    between,
    cost,
    difference,
)

QUANTITIES = {
    "weight_sqnr_db": "of weights",
    "sqnr_before_relu_db": "of what a layer gives before its ReLU",
    "sqnr_after_relu_db": "of what a layer passes on",
    "propagated_sqnr_db": "of what has propagated",
}
BESIDE = {
    "sqnr_after_relu_db": decibels,
    "propagated_sqnr_db": decibels,
    "clipped_share_calibration": share,
}
LABELS = ["lowest SQNR, dB", "propagated, dB", "most clipped, calibration"]


@dataclass(frozen=True)
class Pair:
    """A mistaken variant's rows, and the sound ones with the same options and seeds.

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
    def revealed(self) -> Counter[str]:
        """In how many of the compared seeds each diagnostic but accuracy reveals the mistake."""
        compared = self.wrong[self.wrong["seed"].isin(self.sound["seed"])]
        named = [name for names in compared["revealed_by"] for name in names.split("; ")]
        return Counter(name for name in named if name not in ("", "accuracy"))


def pairs(table: pd.DataFrame, paired: pd.DataFrame) -> list[Pair]:
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


def known_mistakes(table: pd.DataFrame, layers: pd.DataFrame, paired: pd.DataFrame) -> SectionPart:
    """What each mistake costs, which diagnostics reveal it, and which ones accuracy passes."""
    found = pairs(table, paired)
    if not found:
        return SectionPart(missing="No known mistake was evaluated in this study.")
    shown = Table(
        title="Known mistakes",
        groups=[("", 1), ("below each figure that of the sound variant", 2 + len(LABELS)), ("", 2)],
        columns=[
            *("mistake", "accuracy, %", "same class as float32, %", *LABELS),
            *("difference to the sound variant, points", "revealed by"),
        ],
        rows=[_line(pair) for pair in found],
        notes=[
            f"{name}: {MISTAKES[name]}" for name in dict.fromkeys(pair.mistake for pair in found)
        ],
        text_columns=frozenset({"revealed by"}),
    )
    return SectionPart(_unseen(found, layers), [shown])


def _line(pair: Pair) -> list[TableCell]:
    wrong = cost(pair.wrong)
    sound = None if pair.sound.empty else cost(pair.sound)
    return [
        TableCell(pair.mistake, detail=fmt.plural(wrong.seeds, "seed"), kind="head"),
        TableCell(f"{wrong.accuracy_percent:.2f}", _beside(sound, "accuracy_percent")),
        TableCell(f"{wrong.agreement_percent:.2f}", _beside(sound, "agreement_percent")),
        *(
            TableCell(
                write(pair.wrong[column].mean()),
                "" if sound is None else write(pair.sound[column].mean()),
            )
            for column, write in BESIDE.items()
        ),
        TableCell("–" if pair.beside is None else difference(*pair.beside)),
        text(_diagnostics(pair)),
    ]


def _beside(sound: Cost | None, name: str) -> str:
    return "" if sound is None else f"{getattr(sound, name):.2f}"


def _diagnostics(pair: Pair) -> str:
    """`accuracy; SQNR (2 of 3 seeds)`."""
    seeds = pair.sound["seed"].nunique()
    if not seeds:
        return "no sound variant of the same options to compare with"
    names = ["accuracy"] if pair.in_accuracy else []
    names += [
        name if count == seeds else f"{name} ({count} of {seeds} seeds)"
        for name, count in pair.revealed.items()
    ]
    return "; ".join(names) or "none of the diagnostics"


def _unseen(found: list[Pair], layers: pd.DataFrame) -> list[str]:
    """A sentence for each mistake that accuracy passes, or that there is none."""
    compared = [pair for pair in found if pair.beside is not None]
    if not compared:
        return []
    passed = [pair for pair in compared if not pair.in_accuracy]
    if not passed:
        return ["Accuracy reveals each of these mistakes."]
    return [
        f"Accuracy does not reveal {pair.mistake}: {cost(pair.wrong).difference} points to "
        f"float32, the sound variant {cost(pair.sound).difference}; from one to the other "
        f"{difference(*pair.beside)}, paired by image "
        f"({fmt.plural(pair.sound['seed'].nunique(), 'seed')}). Revealed by: "
        f"{_diagnostics(pair)}.{_noise(pair, layers)}"
        for pair in passed
        if pair.beside is not None
    ]


def _noise(pair: Pair, layers: pd.DataFrame) -> str:
    """The loss of SQNR beside the sound variant over the layers, of each kind that has one.

    With the lowest of a layer in either variant.
    """
    stages = pair.wrong["stage"].iloc[0], pair.sound["stage"].iloc[0]
    wrong, sound = (
        layers[layers["stage"] == stage].set_index(["seed", "layer"])[list(QUANTITIES)]
        for stage in stages
    )
    lost = sound.astype(float) - wrong.astype(float)
    words = []
    for column, kind in QUANTITIES.items():
        drops = lost[column].dropna()
        if len(drops) and drops.max() >= 0.1:
            words.append(
                f"that {kind} is {_reach(drops)} (lowest of a layer "
                f"{decibels(wrong[column].min())} dB, of the sound variant "
                f"{decibels(sound[column].min())} dB)"
            )
    return f" Beside the sound variant’s SQNR, {', '.join(words)}." if words else ""


def _reach(drops: pd.Series) -> str:
    """What layers lose, by (seed, layer), in dB; a negative loss is a gain."""
    least, most = (f"{abs(drop):.1f}" for drop in (drops.min(), drops.max()))
    if f"{drops.min():.1f}" == f"{drops.max():.1f}":
        return f"{most} dB lower in every layer"
    other = (
        f"{least} dB higher in {drops.idxmin()[1]}" if drops.min() < 0 else f"{least} dB at least"
    )
    return f"{most} dB lower at most, in {drops.idxmax()[1]}, {other}"
