"""The report: one self-contained page from the tables and figures of one study.

A section is a context function and a template of its name below report/sections/.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scaling.claims.claim import Claim
from scaling.core import numbers as fmt
from scaling.core.errors import UserError
from scaling.report import claims as report_claims
from scaling.report import page
from scaling.report.sections import (
    audit,
    communication,
    comparison,
    learning,
    limits,
    prediction,
    provenance,
    quantization,
    scaling,
    synchronization,
)
from scaling.report.summary import summary
from scaling.tables.schema import StudyTables


@dataclass(frozen=True)
class Section:
    """One section: its name (anchor and template), its title, and what its template shows.

    `questions` are the numbers of the lab's questions whose claims stand at its beginning.
    """

    name: str
    title: str
    context: Callable[[StudyTables], dict[str, Any]]
    questions: tuple[str, ...] = ()


def _method(tables: StudyTables) -> dict[str, Any]:
    counts = sorted({int(count) for count in tables.timing["count"].dropna()}) or [0]
    low, high = counts[0], counts[-1]
    return {
        "epochs": str(low) if low == high else f"{low} to {high}",
        "shares_single_gpu": bool((tables.provenance["measured_as"] != "").any()),
    }


SECTIONS = [
    Section("summary", "Summary", summary),
    Section("batch_size", "Question 1. Batch size and epoch time", scaling.batch_size, ("Q1",)),
    Section("speedup", "Question 2. Time and speedup", scaling.speedup, ("Q2",)),
    Section(
        "communication",
        "Question 3.1. Compute and communication",
        communication.compute_and_communication,
        ("Q3.1",),
    ),
    Section("bandwidth", "Question 3.2. Bandwidth", communication.bandwidth, ("Q3.2",)),
    Section(
        "large_batches",
        "Question 4. Large batches",
        learning.large_batches,
        ("Q4.1", "Q4.2"),
    ),
    Section("set_epoch", "Question 5. Shuffling anew", synchronization.set_epoch, ("Q5",)),
    Section(
        "collectives",
        "Question 6. What travels in a step",
        synchronization.collectives,
        ("Q6",),
    ),
    Section("buffers", "Question 7. Gradients only", synchronization.buffers, ("Q7",)),
    Section("limits", "Physical limits", limits.limits),
    Section("quantization", "Part B. Int8 quantization", quantization.part_b),
    Section("side_by_side", "Side by side with published studies", comparison.side_by_side),
    Section("audit", "Audit", audit.findings),
    Section("prediction", "Prediction and recommendation", prediction.prediction),
    Section("method", "Method", _method),
    Section("fixed_cost", "Fixed cost of a run", limits.fixed_cost),
    Section("provenance", "Provenance", provenance.provenance),
]


def render(
    tables: StudyTables,
    claims: list[Claim],
    figures: dict[str, str],
    template: Path,
    *,
    sections: Sequence[Section] = SECTIONS,
    partial: bool = False,
    side_by_side: bool = False,
    replayed_from: str | None = None,
) -> str:
    """The page as HTML, from `template` and its neighbours (sections/, macros, style.css).

    `claims` are those of the study, `figures` data URIs by name; the page has these `sections`. A
    study with missing cells is refused unless `partial`; the page then says so at its top, where it
    also warns of the times of runs that went `side_by_side` and names the stored study it was
    `replayed_from`. Raises UserError for missing cells, and for a template that does not fit.
    """
    missing = [fmt.cell_name(row) for row in tables.missing.itertuples()]
    if missing and not partial:
        raise UserError(
            f"{fmt.plural(len(missing), 'cell')} of {tables.study} are missing, the first is "
            f"{missing[0]}; run them, or ask for a partial report with --partial"
        )
    return page.render(
        template,
        study=tables.study,
        facts=provenance.facts(tables),
        on_cpu=tables.on_cpu,
        cpu_threads=provenance.cpu_threads(tables),
        cells=len(tables.timing),
        missing=missing,
        side_by_side=side_by_side,
        replayed_from=replayed_from,
        sections=[
            {
                "name": section.name,
                "title": section.title,
                "context": section.context(tables),
                "answers": report_claims.answers(
                    claims, section.questions, tables.experiment("remedies")
                ),
            }
            for section in sections
        ],
        verdicts=report_claims.verdicts(claims),
        verdict_symbols=report_claims.SYMBOLS,
        figures_of=report_claims.figures,
        figures=figures,
    )
