"""A claim on a study: what was expected, the rule that decides it, and what was measured."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from scaling.core import files
from scaling.core.errors import UserError
from scaling.core.statistics import judge

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
