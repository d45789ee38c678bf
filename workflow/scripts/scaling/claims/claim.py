"""A claim on a study: a hypothesis, the verdict on it, what was measured, and the evidence."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter, ValidationError

from scaling.core import files
from scaling.core.errors import UserError

Verdict = Literal["supported", "refuted", "in part", "unclear", "not measured"]
"""Supported: the figures pass the test; refuted: they contradict the hypothesis; unclear: there are
figures, but their noise is too large to tell; in part: not the same in all cells, which the claim
names; not measured: there are none."""
Figure = float | int | str


@dataclass(frozen=True)
class Evidence:
    """The figures of one file that a claim rests on, and the rule they were put to.

    `file` is relative to results/; `figures` have the names by which the table knows them, and
    their values are finite, as JSON has no other (an infinite time is the word "infinite"); `test`
    says in words when they support the hypothesis, and when they refute it.
    """

    file: str
    figures: dict[str, Figure]
    test: str


@dataclass(frozen=True)
class Part:
    """The verdict on one cell of the claim's configuration."""

    gpus: int
    batch_size: int
    verdict: Verdict


@dataclass(frozen=True)
class Claim:
    """One claim, made from the tables at hand: other numbers make another sentence or verdict.

    `id` is its own in the study (it is an anchor of the report), `question` a key of
    `registry.CLAIMS`. All claims of a `kind` have the same `hypothesis`; `configuration` is what
    part of the study the claim is about, say `tuned/ddp, 2 GPUs`, or "". The `sentence` says what
    was measured or, where nothing was, what to add to the study's configuration. `parts` are the
    verdicts on its cells, of a claim that is about each of them.
    """

    id: str
    question: str
    kind: str
    hypothesis: str
    configuration: str
    verdict: Verdict
    sentence: str
    evidence: list[Evidence]
    parts: list[Part] = field(default_factory=list)


def write(path: Path, study: str, claims: Iterable[Claim]) -> None:
    """Write the document of a study's claims; the order is kept.

    Raises ValueError for a figure that is not finite.
    """
    files.write_json(path, {"study": study, "claims": [asdict(claim) for claim in claims]})


def read(path: Path) -> list[Claim]:
    """The claims of the document at `path`; UserError where it is none."""
    document = files.read_json(path)
    try:
        return TypeAdapter(list[Claim]).validate_python(document["claims"])
    except (KeyError, TypeError, ValidationError) as error:
        raise UserError(f"{path} is no document of claims ({error!r}); make it again") from error
