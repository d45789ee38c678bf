"""The report: one self-contained page from the tables and figures of one study.

A section is a context function and a template of its name below report/sections/.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scaling import (
    page,
    report_audit,
    report_claims,
    report_communication,
    report_comparison,
    report_learning,
    report_limits,
    report_prediction,
    report_provenance,
    report_quantization,
    report_scaling,
    report_startup,
    report_synchronization,
)
from scaling import report_format as fmt
from scaling.claims.claim import Claim
from scaling.errors import UserError
from scaling.findings import findings
from scaling.result_tables import StudyTables

FIGURES = [
    *("epoch_time", "speedup", "communication", "learning", "quantization_histograms"),
    *("comparison", "collectives"),
    *("remedies", "loss_curves"),
    "quantization_sizes",
]


@dataclass(frozen=True)
class Section:
    """One section: its name (anchor and template), its title, and what its template shows.

    `questions` are the numbers of the lab's questions whose claims stand at its beginning.
    """

    name: str
    title: str
    context: Callable[[StudyTables], dict[str, Any]]
    questions: tuple[str, ...] = ()


def _summary(tables: StudyTables) -> dict[str, Any]:
    return {"findings": findings(tables)}


def _method(tables: StudyTables) -> dict[str, Any]:
    counts = sorted({int(count) for count in tables.timing["count"].dropna()}) or [0]
    low, high = counts[0], counts[-1]
    return {
        "epochs": str(low) if low == high else f"{low} to {high}",
        "shares_single_gpu": bool((tables.provenance["measured_as"] != "").any()),
    }


SECTIONS = [
    Section("summary", "Summary", _summary),
    Section(
        "batch_size", "Question 1. Batch size and epoch time", report_scaling.batch_size, ("Q1",)
    ),
    Section("speedup", "Question 2. Time and speedup", report_scaling.speedup, ("Q2",)),
    Section(
        "communication",
        "Question 3.1. Compute and communication",
        report_communication.compute_and_communication,
        ("Q3.1",),
    ),
    Section("bandwidth", "Question 3.2. Bandwidth", report_communication.bandwidth, ("Q3.2",)),
    Section(
        "large_batches",
        "Question 4. Large batches",
        report_learning.large_batches,
        ("Q4.1", "Q4.2"),
    ),
    Section("set_epoch", "Question 5. Shuffling anew", report_synchronization.set_epoch, ("Q5",)),
    Section(
        "collectives",
        "Question 6. What travels in a step",
        report_synchronization.collectives,
        ("Q6",),
    ),
    Section("buffers", "Question 7. Gradients only", report_synchronization.buffers, ("Q7",)),
    Section("limits", "Physical limits", report_limits.limits),
    Section("quantization", "Part B. Int8 quantization", report_quantization.part_b),
    Section("side_by_side", "Side by side with published studies", report_comparison.side_by_side),
    Section("audit", "Audit", report_audit.findings),
    Section("prediction", "Prediction and recommendation", report_prediction.prediction),
    Section("method", "Method", _method),
    Section("fixed_cost", "Fixed cost of a run", report_startup.fixed_cost),
    Section("provenance", "Provenance", report_provenance.provenance),
]


def render(
    tables: StudyTables,
    claims: list[Claim],
    figures: dict[str, str],
    template: Path,
    *,
    partial: bool = False,
    side_by_side: bool = False,
    replayed_from: str | None = None,
) -> str:
    """The page as HTML, from `template` and its neighbours (sections/, macros, style.css).

    `claims` are those of the study, `figures` data URIs by name. A study with missing cells is
    refused unless `partial`; the page then says so at its top, where it also warns of the times of
    runs that went `side_by_side` and names the stored study it was `replayed_from`.
    Raises UserError for missing cells, and for a template that does not fit.
    """
    missing = [fmt.cell_name(row) for row in tables.missing.itertuples()]
    if missing and not partial:
        raise UserError(
            f"{fmt.plural(len(missing), 'cell')} of {tables.study} are missing, the first is "
            f"{missing[0]}; run them, or ask for a partial report with --partial"
        )
    sections = [
        {
            "name": section.name,
            "title": section.title,
            "context": section.context(tables),
            "answers": report_claims.answers(claims, section.questions),
        }
        for section in SECTIONS
    ]
    return page.render(
        template,
        study=tables.study,
        facts=report_provenance.facts(tables),
        on_cpu=tables.on_cpu,
        cpu_threads=report_provenance.cpu_threads(tables),
        cells=len(tables.timing),
        missing=missing,
        side_by_side=side_by_side,
        replayed_from=replayed_from,
        sections=sections,
        verdicts=report_claims.verdicts(claims),
        verdict_symbols=report_claims.SYMBOLS,
        figures_of=report_claims.figures,
        first_clause=report_claims.first_clause,
        figures=figures,
    )


def read_figures(folder: Path) -> dict[str, str]:
    """The SVG files of `FIGURES` in `folder` as data URIs, by name."""
    return {name: page.figure_uri(folder / f"{name}.svg") for name in FIGURES}
