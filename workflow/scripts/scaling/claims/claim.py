"""A claim on a study: what was expected, the rule that decides it, and what was measured."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from pydantic import TypeAdapter, ValidationError

from scaling.core import files
from scaling.core import numbers as fmt
from scaling.core.errors import UserError
from scaling.core.statistics import Difference, judge

Verdict = Literal["supported", "refuted", "in part", "unclear", "not measured"]
"""Supported: the values pass the test; refuted: they contradict the hypothesis; in part: cells
differ, and the claim names them; unclear: too noisy to decide; not measured: there are none."""
SYMBOLS: dict[Verdict, str] = {
    "supported": "✓",
    "refuted": "✗",
    "in part": "◐",
    "unclear": "?",
    "not measured": "–",
}
"""Each verdict with its symbol, in the order of the counts."""
BATCH = "b\u00a0=\u00a0"
HELD = {"supported": "held for", "refuted": "not for", "unclear": "unclear for"}
NO_TRACE = (
    "These records have no traced steps: measure the cells again, with "
    "`training.instrumented_iterations` above 0."
)
"""What a claim says that needs a trace, if there is none."""
Judged = tuple[Any, object, object]
"""A cell, whether the claim's test holds in it, and whether it clearly fails."""


@dataclass(frozen=True)
class Part:
    """The verdict on one cell of the claim's configuration."""

    gpus: int
    batch_size: int
    verdict: Verdict


@dataclass(frozen=True)
class Claim:
    """A claim made from a study's tables; other values give another sentence or verdict.

    `id` is unique in the study, and an anchor of the report. `kind`, `hypothesis` and `test` are
    those of its `Hypothesis`, `evidence` is its table. `configuration` is the part of the study it
    is about, such as `tuned/ddp, 2 GPUs`, or "". The `sentence` says what was measured or, if
    nothing was, what to add to the configuration. `parts` are the verdicts on single cells.
    """

    id: str
    question: str
    kind: str
    hypothesis: str
    test: str
    evidence: str
    configuration: str
    verdict: Verdict
    sentence: str
    parts: list[Part] = field(default_factory=list)


@dataclass(frozen=True)
class Hypothesis:
    """What is expected of every study, as an affirmative sentence, and the `test` that decides it.

    `kind` begins with the question, as in `Q1-faster`; `table` has the evidence; `more` would tell
    what is unclear.
    """

    kind: str
    sentence: str
    table: str
    test: str
    more: str = "more runs"

    def claim(
        self,
        about: str,
        sentence: str,
        *,
        holds: object = False,
        fails: object = False,
        parts: Iterable[Judged] = (),
        unclear: str = "",
    ) -> Claim:
        """Return the claim on a configuration such as `tuned/ddp, 2 GPUs`.

        It is supported if its test `holds`, refuted if it clearly `fails`, else unclear; the same
        for each of `parts`, of which the verdict is then the one they share, or else "in part". A
        sentence on what is unclear ends with the words `unclear`, or with what would tell.
        """
        own = [
            Part(int(cell.gpus), int(cell.batch_size), judge(yes, no, "unclear"))
            for cell, yes, no in parts
        ]
        found: set[Verdict] = {part.verdict for part in own} or {judge(holds, fails, "unclear")}
        verdict = next(iter(found)) if len(found) == 1 else "in part"
        if verdict == "in part":
            sentence += _where(own)
        if "unclear" in found:
            sentence = f"{sentence.removesuffix('.')}; {unclear or f'{self.more} would tell'}."
        of = about.partition(",")[0].split(" ")[-1].replace("/", "-")
        return Claim(
            id=f"{self.kind}-{of}" if of else self.kind,
            question=self.kind.partition("-")[0],
            kind=self.kind,
            hypothesis=self.sentence,
            test=self.test,
            evidence=self.table,
            configuration=about,
            verdict=verdict,
            sentence=sentence,
            parts=own,
        )

    def missing(self, about: str, what_to_add: str) -> Claim:
        """Return the claim that was not measured."""
        return replace(self.claim(about, what_to_add, holds=True), verdict="not measured")


def _where(parts: Sequence[Part]) -> str:
    """Describe in which cells a claim held: ` Held for b = 32, 128; not for 8192.`"""
    said: list[str] = []
    for verdict, words in HELD.items():
        if sizes := [str(part.batch_size) for part in parts if part.verdict == verdict]:
            said.append(f"{words} {'' if said else BATCH}{', '.join(sizes)}")
    return f" {'; '.join(said).capitalize()}."


@dataclass(frozen=True)
class Answer:
    """The answer to a question in one sentence, None if it was not measured, and its claims."""

    text: str | None
    claims: list[Claim]


@dataclass(frozen=True)
class Findings:
    """What a study says on the lab's questions: the answers that it has by question, and claims."""

    study: str
    answers: dict[str, str]
    claims: list[Claim]


def read(path: Path) -> Findings:
    """Return the findings in the document at `path`; UserError if it is invalid."""
    try:
        return TypeAdapter(Findings).validate_python(files.read_json(path))
    except ValidationError as error:
        raise UserError(f"{path} is no document of claims ({error!r}); make it again") from error


def batch(cell: Any) -> str:
    """Format the batch size of a cell: `b = 512`."""
    return f"{BATCH}{cell.batch_size}"


def label(row: Any) -> str:
    """Return `tuned/ddp, 2 × 512`; one GPU has no strategy."""
    configuration = row.recipe if row.gpus == 1 else f"{row.recipe}/{row.strategy}"
    return f"{configuration}, {int(row.gpus)} × {int(row.batch_size)}"


def span_of_shares(shares: pd.Series) -> str:
    """Format the smallest and largest of some shares, not below 0: `10–20 %`."""
    ends = shares.clip(lower=0).agg(["min", "max"]).map(fmt.percent)
    return "–".join(ends.unique()).replace(" %–", "–")


def difference(found: Difference) -> str:
    """Format in percentage points: `−3.10 points (95 % interval −4.00 to −2.20)`."""
    if math.isnan(found.mean):
        return "unknown (a loss is not finite)"
    mean, low, high = (fmt.points(100 * one) for one in (found.mean, found.low, found.high))
    ends = "no interval" if math.isnan(found.low) else f"95 % interval {low} to {high}"
    return f"{mean} points ({ends})"


def spread(row: Any) -> str:
    """Format mean and range of test accuracy over the seeds: `71.2 % (70.9–71.5)`."""
    low, high = 100 * row.test_accuracy_min, 100 * row.test_accuracy_max
    ends = f" ({fmt.span(low, high)})" if low < high else ""
    return f"{fmt.significant(100 * row.test_accuracy)} %{ends}"


def span_of_times(ratios: pd.Series) -> str:
    """Format the smallest and largest of some ratios: `1.83–1.98×`."""
    low, high = fmt.significant(ratios.min()), fmt.times(ratios.max())
    return high if len(ratios) == 1 else f"{low}–{high}"


def measured(table: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return the rows of ok cells with a value in `column`."""
    return table[(table["status"] == "ok") & table[column].notna()]


def row_at(table: pd.DataFrame, index: Any) -> Any:
    """Return the row of `table` with this label."""
    return next(table.loc[[index]].itertuples())


def extremes(table: pd.DataFrame, column: str) -> tuple[Any, Any]:
    """Return the rows with the smallest and the largest value of `column`."""
    return row_at(table, table[column].idxmin()), row_at(table, table[column].idxmax())
