"""Judge hypotheses about a study, and write measured values as text."""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
from pydantic import TypeAdapter

from scaling.core import files
from scaling.core import numbers as fmt
from scaling.core.grid import REFERENCE_BATCH
from scaling.core.statistics import Difference, judge
from scaling.tables.schema import configuration

Verdict = Literal["supported", "refuted", "in part", "unclear"]
"""Supported: the values pass the test. Refuted: they contradict the hypothesis. In part: the
hypothesis holds for some batch sizes, not for all. Unclear: noise hides the result."""
SYMBOLS: dict[Verdict, str] = dict(zip(get_args(Verdict), "✓✗◐?", strict=True))
BATCH = "b\u00a0=\u00a0"
HELD: dict[Verdict, str] = {"supported": "held for", "refuted": "not for", "unclear": "unclear for"}


@dataclass(frozen=True)
class Claim:
    """A verdict on a hypothesis for one configuration, and a sentence with the measured values.

    `id` begins with the question: `Q2-faster-tuned-ddp`.
    """

    id: str
    hypothesis: str
    test: str
    configuration: str
    verdict: Verdict
    sentence: str


@dataclass(frozen=True)
class Hypothesis:
    """A statement and its test. `more` names the data that would decide an unclear verdict."""

    id: str
    sentence: str
    test: str
    more: str = "more runs"

    def claim(
        self,
        about: str,
        sentence: str,
        *,
        holds: object = False,
        fails: object = False,
        parts: Iterable[tuple[Any, object, object]] = (),
        unclear: str = "",
    ) -> Claim:
        """Return the claim on configuration `about`: supported if `holds`, else refuted if `fails`.

        Otherwise the verdict is "unclear". The sentence then ends with the text `unclear` or, if
        that is "", with "needs {self.more}". `parts` are tuples (row, holds, fails) with a verdict
        each. If these differ, the claim is "in part" or, if no part is supported, refuted.
        """
        cells: dict[Verdict, list[str]] = {}
        for cell, yes, no in parts:
            cells.setdefault(judge(yes, no, "unclear"), []).append(str(cell.batch_size))
        found: set[Verdict] = set(cells) or {judge(holds, fails, "unclear")}
        if len(found) > 1:
            held = [f"{words} {', '.join(cells[of])}" for of, words in HELD.items() if of in cells]
            held[0] = held[0].replace(" for ", f" for {BATCH}").capitalize()
            sentence += f" {'; '.join(held)}."
        if "unclear" in found:
            sentence = f"{sentence.removesuffix('.')}; {unclear or f'needs {self.more}'}."
        mixed: Verdict = "in part" if "supported" in found else "refuted"
        verdict = found.pop() if len(found) == 1 else mixed
        of = about.partition(",")[0].split(" ")[-1].replace("/", "-")
        name = f"{self.id}-{of}".removesuffix("-")
        return Claim(name, self.sentence, self.test, about, verdict, sentence)


@dataclass(frozen=True)
class Answer:
    """An answer in words (None if the question was not measured), and claims on the question."""

    text: str | None
    claims: Sequence[Claim] = ()


@dataclass(frozen=True)
class Findings:
    """All claims on a study, and the answer to each question that was measured."""

    study: str
    answers: dict[str, str]
    claims: list[Claim]


def read(path: Path) -> Findings:
    """Return the findings in the JSON file `path`."""
    return TypeAdapter(Findings).validate_python(files.read_json(path))


def label(row: Any) -> str:
    """Return a configuration's name: `tuned/ddp, 2 × 512`, or `tuned, 1 × 512` on one GPU."""
    name = configuration(row.recipe, row.strategy)
    return f"{name}, {int(row.gpus)} × {int(row.batch_size)}"


def difference(found: Difference) -> str:
    """Return a difference of accuracies as text: `−3.10 points (95 % interval −4.00 to −2.20)`."""
    mean, low, high = (fmt.points(100 * one) for one in (found.mean, found.low, found.high))
    ends = "no interval" if math.isnan(found.low) else f"95 % interval {low} to {high}"
    return f"{mean} points ({ends})"


def spread(row: Any) -> str:
    """Return mean and range of test accuracy over seeds as text: `71.2 % (range 70.9–71.5)`."""
    low, high = 100 * row.test_accuracy_min, 100 * row.test_accuracy_max
    ends = f" (range {fmt.span(low, high)})" if low < high else ""
    return f"{fmt.significant(100 * row.test_accuracy)} %{ends}"


def extremes(table: pd.DataFrame, column: str) -> tuple[Any, Any]:
    """Return the rows with the smallest and the largest value of `column`."""
    low, high = table.loc[[table[column].idxmin(), table[column].idxmax()]].itertuples()
    return low, high


def batch(cell: Any) -> str:
    """Return the batch size of a row as text: `b = 512`."""
    return f"{BATCH}{cell.batch_size}"


def span(values: pd.Series, write: Callable[[float], str] = fmt.percent) -> str:
    """Return the range of `values` formatted by `write`, `10–20 %`. Negative values become 0."""
    ends = values.clip(lower=0).agg(["min", "max"]).map(write)
    return re.sub(" %–|×–", "–", "–".join(ends.unique()))


def measured(table: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return the rows with status "ok" and a value in `column`."""
    return table[(table["status"] == "ok") & table[column].notna()]


def nearest(table: pd.DataFrame) -> pd.DataFrame:
    """Return `table` sorted by batch size: those nearest to 128, by ratio, come first."""
    factors = (table["batch_size"].astype(float) / REFERENCE_BATCH).map(np.log).abs()
    return table.loc[factors.sort_values(kind="stable").index]


def on_several_gpus(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of recipes that have rows on several GPUs.

    If none of these recipes has a row on the fewest GPUs, return all rows.
    """
    found = table[table["recipe"].isin(table.loc[table["gpus"] > 1, "recipe"])]
    return found if (found["gpus"] == table["gpus"].min()).any() else table


def of_grid(table: pd.DataFrame, cells: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of `table` whose batch size ran on the recipe's fewest GPUs in `cells`."""
    fewest = cells[cells["gpus"] == cells.groupby("recipe")["gpus"].transform("min")]
    keys = ["recipe", "batch_size"]
    return table[pd.MultiIndex.from_frame(table[keys]).isin(fewest[keys].apply(tuple, axis=1))]


def weak_scaling(rows: pd.DataFrame, timing: pd.DataFrame) -> tuple[str, str]:
    """Return the column of `rows` that has the weak-scaling speedups, and their quantity.

    `rows` are of speedup.csv. The column is `training_speedup` if all have one, else `speedup`.
    This is of "throughput" if all timed rows in `timing` are of commands that print samples.
    """
    if rows["training_speedup"].notna().all():
        return "training_speedup", "training time"
    timed = timing[timing["epoch_seconds"].notna()]
    rated = timed["unit"].replace("", None).notna().all() and timed["samples"].notna().all()
    return "speedup", "throughput" if rated else "epoch time"


def most_gpus(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with the largest number of GPUs."""
    return table[table["gpus"] == table["gpus"].max()]
