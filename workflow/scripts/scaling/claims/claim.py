"""A claim on a study: hypothesis, verdict, measured values, and evidence."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter, ValidationError

from scaling.core import files
from scaling.core.errors import UserError

Verdict = Literal["supported", "refuted", "in part", "unclear", "not measured"]
"""Supported: the values pass the test; refuted: they contradict the hypothesis; unclear: they are
too noisy to decide; in part: cells differ, and the claim names them; not measured: there are
none."""
Figure = float | int | str


@dataclass(frozen=True)
class Evidence:
    """The values in one file that a claim is based on, and the test applied to them.

    `file` is relative to results/; `figures` are named as in the table and finite, as JSON has no
    other numbers (an infinite time is the word "infinite"); `test` states when they support the
    hypothesis, and when they refute it.
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
    """A claim made from a study's tables; other values give another sentence or verdict.

    `id` is unique in the study (and an anchor of the report), `question` a key of
    `registry.CLAIMS`. All claims of a `kind` have the same `hypothesis`; `configuration` is the
    part of the study it is about, such as `tuned/ddp, 2 GPUs`, or "". The `sentence` says what was
    measured or, if nothing was, what to add to the study's configuration. `parts` are the verdicts
    on single cells, if the claim has them.
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
    """Write a study's claims in order.

    Raises ValueError for a non-finite value.
    """
    files.write_json(path, {"study": study, "claims": [asdict(claim) for claim in claims]})


def read(path: Path) -> list[Claim]:
    """Return the claims of the document at `path`; UserError if it is invalid."""
    document = files.read_json(path)
    try:
        return TypeAdapter(list[Claim]).validate_python(document["claims"])
    except (KeyError, TypeError, ValidationError) as error:
        raise UserError(f"{path} is no document of claims ({error!r}); make it again") from error
