"""Question 4.2 of the report: the claims on remedies as one table, a row each."""

import re
from dataclasses import dataclass

from scaling.claims.claim import Claim, Figure
from scaling.claims.remedies import REMEDY
from scaling.claims.running_statistics import caveat_of
from scaling.core import numbers as fmt
from scaling.report.table import TableCell, head, status
from scaling.tables.experiments import best_remedy

SAME, NOT_FINITE = "the same runs", "not finite"
OWN_END, PLAIN_END = "remedy’s end", "plain SGD’s end"
NOTES = {
    SAME: "“The same runs”: with the remedy and without it both train and are evaluated alike in "
    "every seed, so that there is nothing to compare.",
    NOT_FINITE: "“Not finite”: a loss is not, so that there is no accuracy to compare.",
    OWN_END: "“Remedy’s end”: its best rate is at an end of its sweep. Beyond it the remedy may be "
    "better, so it is not shown to hurt there.",
    PLAIN_END: "“Plain SGD’s end”: the best rate of plain SGD is at an end of its sweep. Beyond it "
    "plain SGD may be better, so the remedy is not shown to help there.",
}
PRECISE = best_remedy.PRECISE.replace("_", " ")


@dataclass(frozen=True)
class Line:
    """The row of one claim: the remedy, and an entry for each global batch or one for them all."""

    claim: Claim
    remedy: TableCell
    entries: list[TableCell]


@dataclass(frozen=True)
class RemedyTable:
    """The rows by what they are compared with, the notes that any row needs, and the test."""

    batches: list[int]
    groups: dict[str, list[Line]]
    notes: list[str]
    test: str


def is_on_remedy(claim: Claim) -> bool:
    """Whether the claim is that one remedy helps."""
    return claim.id.startswith(REMEDY)


def table(claims: list[Claim]) -> RemedyTable | None:
    """The claims on remedies, from their evidence; None without any."""
    if not claims:
        return None
    batches = sorted({batch for claim in claims for batch in _known_batches(_figures(claim))})
    groups: dict[str, list[Line]] = {}
    for claim in claims:
        against = _figures(claim).get("compared_with")
        label = f"against {against}" if against else "not compared"
        groups.setdefault(label, []).append(_line(claim, batches))
    return RemedyTable(batches, groups, _notes(claims, groups), claims[0].evidence[0].test)


def _figures(claim: Claim) -> dict[str, Figure]:
    return claim.evidence[0].figures


def _line(claim: Claim, batches: list[int]) -> Line:
    figures, name = _figures(claim), claim.id.removeprefix(REMEDY)
    if "options" not in figures:
        whole = TableCell(claim.sentence, kind="text", columns=max(1, len(batches)))
        return Line(claim, head(name), [whole])
    remedy = TableCell(name, detail=str(figures["options"]), kind="head")
    return Line(claim, remedy, [_entry(figures, batch) for batch in batches])


def _entry(figures: dict[str, Figure], batch: int) -> TableCell:
    """The gain at a global batch in points, with its interval and what qualifies it."""
    if batch in _listed(figures, "same_runs_at"):
        return TableCell(SAME)
    name = f"gain_at_{batch}"
    if f"{name}_difference" not in figures:
        return status("not run")
    gain, low, high = (_points(figures[f"{name}_{end}"]) for end in ("difference", "low", "high"))
    if not gain:
        return status(NOT_FINITE)
    ends = {"remedy_at_an_end_at": OWN_END, "plain_at_an_end_at": PLAIN_END}
    flags = tuple(flag for key, flag in ends.items() if batch in _listed(figures, key))
    return TableCell(gain, detail=f"{low} to {high}" if low else "no interval", flags=flags)


def _points(share: Figure) -> str:
    """A difference of shares in percentage points, "" for the word that stands for none."""
    return "" if isinstance(share, str) else fmt.points(100 * share)


def _known_batches(figures: dict[str, Figure]) -> set[int]:
    compared = (re.fullmatch(r"gain_at_(\d+)_difference", name) for name in figures)
    return _listed(figures, "same_runs_at") | {int(found[1]) for found in compared if found}


def _listed(figures: dict[str, Figure], name: str) -> set[int]:
    """The global batches in a figure such as `512, 2048`."""
    return {int(batch) for batch in str(figures.get(name, "")).split(", ") if batch}


def _notes(claims: list[Claim], groups: dict[str, list[Line]]) -> list[str]:
    entries = [entry for lines in groups.values() for line in lines for entry in line.entries]
    shown = {word for entry in entries for word in (entry.text, *entry.flags)}
    idle = [
        f"{claim.id.removeprefix(REMEDY)} at {_figures(claim)['nothing_to_warm_up_at']}: its best "
        "rate is not above the base rate, so there is nothing to warm up."
        for claim in claims
        if "nothing_to_warm_up_at" in _figures(claim)
    ]
    updates = {
        int(found[1]): int(value)
        for claim in claims
        for name, value in _figures(claim).items()
        if (found := re.fullmatch(r"planned_updates_at_(\d+)", name))
    }
    statistics = caveat_of(updates)
    if statistics and any(PRECISE in str(_figures(claim).get("options")) for claim in claims):
        statistics += f" Remedies with {PRECISE} are evaluated by other statistics."
    return [
        *(note for word, note in NOTES.items() if word in shown),
        *idle,
        *([statistics] if statistics else []),
    ]
