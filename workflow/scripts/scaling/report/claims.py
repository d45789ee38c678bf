"""The claims in the report: those of a section's questions, and the verdicts in the summary."""

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from scaling.claims import texts
from scaling.claims.claim import Claim, Evidence, Verdict
from scaling.core import numbers as fmt
from scaling.report.table import Table, TableCell, status, text

SYMBOLS: dict[Verdict, str] = {
    "supported": "✓",
    "refuted": "✗",
    "unclear": "?",
    "not measured": "–",
}

TECHNIQUES = "Q4.2"
"""The question whose answer has tables of techniques beside its claims."""
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


@dataclass(frozen=True)
class Answer:
    """One of the lab's questions with the claims that answer it.

    `tables` have the verdicts on techniques, which are put to `test`.
    """

    number: str
    question: str
    claims: list[Claim]
    tables: list[Table]
    test: str


def answers(claims: list[Claim], numbers: tuple[str, ...], remedies: pd.DataFrame) -> list[Answer]:
    """The questions of these numbers in their order, each with its claims.

    A test that several claims of a question are put to is written out once. `remedies` is
    remedies.csv.
    """
    return [
        Answer(
            number=number,
            question=texts.questions()[number],
            claims=_tests_once([one for one in claims if one.question == number]),
            tables=technique_tables(remedies) if number == TECHNIQUES else [],
            test=texts.texts()[TECHNIQUES].test,
        )
        for number in numbers
    ]


def _tests_once(claims: list[Claim]) -> list[Claim]:
    """`claims` with a reference in place of a test that a claim before them has."""
    first: dict[str, str] = {}
    made = []
    for claim in claims:
        tested, *shown = claim.evidence
        known = first.setdefault(tested.test, claim.id)
        if known != claim.id:
            tested = replace(tested, test=f"that of {known}.")
        made.append(replace(claim, evidence=[tested, *shown]))
    return made


def technique_tables(remedies: pd.DataFrame) -> list[Table]:
    """What each technique gains at each global batch, and its verdict, by what it is compared with.

    From the columns of remedies.csv that `gains.with_gains` makes.
    """
    rows = remedies[remedies["helps"] != ""]
    compared = rows[rows["compared_with"] != ""]
    batches = sorted(int(batch) for batch in compared["global_batch"].unique())
    against = compared.groupby("remedy", sort=False)["compared_with"].first()
    groups = rows.groupby(
        rows["remedy"].map(against).fillna("nothing, for want of runs"), sort=False
    )
    tables = [
        Table(
            title=f"Gain in test accuracy against {label}, percentage points, by global batch",
            columns=["remedy", "verdict", *map(str, batches)],
            rows=[_technique(own, batches) for _, own in group.groupby("remedy", sort=False)],
            text_columns=frozenset({"verdict"}),
        )
        for label, group in groups
    ]
    if tables:
        tables[-1] = replace(tables[-1], notes=_notes(rows, tables))
    return tables


def _technique(rows: pd.DataFrame, batches: list[int]) -> list[TableCell]:
    """A line: the technique, its verdict, and its gain at each global batch."""
    at = {int(row.global_batch): row for row in rows.itertuples()}
    first = rows.iloc[0]
    swept = f"best of {rows['rates'].max():g} rates" if rows["rates"].max() > 1 else "unswept"
    options = first["options"].replace("_", " ")
    return [
        TableCell(str(first["remedy"]), detail=f"{options}, {swept}", kind="head"),
        text(_verdict(first["helps"])),
        *(_gain(at.get(batch)) for batch in batches),
    ]


def _verdict(helps: str) -> str:
    """Write a verdict of remedies.csv, which says `undecided` of what is unclear."""
    symbol = {"supported": "✓", "refuted": "✗"}.get(helps, "?")
    return f"{symbol} {'unclear' if helps == 'undecided' else helps}"


def _gain(row: Any) -> TableCell:
    """The gain in points, with its interval and what qualifies it."""
    if row is None or not row.compared_with:
        return status("not run")
    if row.same_as_compared:
        return TableCell(SAME)
    if pd.isna(row.gain):
        return status(NOT_FINITE)
    ends = {OWN_END: row.at_edge, PLAIN_END: row.compared_at_edge}
    low, high = (fmt.points(100 * end) for end in (row.gain_low, row.gain_high))
    return TableCell(
        fmt.points(100 * row.gain),
        detail="no interval" if pd.isna(row.gain_low) else f"{low} to {high}",
        flags=tuple(flag for flag, holds in ends.items() if holds),
    )


def _notes(rows: pd.DataFrame, tables: list[Table]) -> list[str]:
    """What the tables' words mean, those that are in them."""
    cells = [cell for table in tables for line in table.rows for cell in line]
    shown = {word for cell in cells for word in (cell.text, *cell.flags)}
    idle = rows[rows["nothing_to_warm_up"]].groupby("remedy", sort=False)["global_batch"]
    return [
        "In each column: mean test accuracy with the remedy minus that without it, after equally "
        "many epochs, and its 95 % interval. The verdict is on all global batches together: "
        "supported, it helps, where every interval is above 0; refuted, it hurts somewhere, where "
        "one that is widened for their number is below 0; what the marks say qualifies both.",
        *(note for word, note in NOTES.items() if word in shown),
        *(
            f"{name} at {', '.join(str(int(batch)) for batch in batches)}: its best rate is not "
            "above the base rate, so there is nothing to warm up."
            for name, batches in idle
        ),
    ]


def verdicts(claims: list[Claim]) -> dict[str, Any]:
    """What the summary says of all claims: how many have which verdict, and which fall short."""
    counted = Counter(claim.verdict for claim in claims)
    parts = [f"{counted[verdict]} {verdict}" for verdict in SYMBOLS if counted[verdict]]
    unclear = [claim for claim in claims if claim.verdict == "unclear"]
    per_question = Counter(claim.question for claim in unclear)
    return {
        "total": fmt.plural(len(claims), "claim"),
        "counts": ", ".join(parts) or "none",
        "refuted": [claim for claim in claims if claim.verdict == "refuted"],
        "unclear": unclear,
        "unclear_in": f"{len(unclear)} unclear: "
        + ", ".join(f"{count} on {number}" for number, count in per_question.items()),
    }


def figures(evidence: Evidence) -> str:
    """The figures of a piece of evidence in one line: `speedup 3.20, gpus 4`."""
    return ", ".join(
        f"{name.replace('_', ' ')} {_written(value)}" for name, value in evidence.figures.items()
    )


def _written(value: float | int | str) -> str:
    """A count of millions, bytes for one, is written in full."""
    if isinstance(value, float):
        whole = value.is_integer() and abs(value) >= fmt.MILLION
        return f"{value:,.0f}" if whole else fmt.significant(value)
    return str(value)
