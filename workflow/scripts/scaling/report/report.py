"""The report: one self-contained page from the tables, figures and records of a study."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from scaling.claims.claim import SYMBOLS, Findings
from scaling.core import numbers as fmt
from scaling.core.errors import UserError
from scaling.figures import FIGURES
from scaling.report import cell_map, frames, overview, provenance
from scaling.report import cells as cell_pages
from scaling.report.table import tables
from scaling.report.views import PARTS
from scaling.tables import schema
from scaling.tables.schema import StudyTables


@dataclass(frozen=True)
class Question:
    """A question of the lab, and the contents of its section.

    `name` is that of its answer and its tables, and the prefix of its claims' questions; `key` is
    the configuration key that adds it to a study; `figures` are shown in its section.
    """

    name: str
    title: str
    key: str
    figures: tuple[str, ...] = ()


QUESTIONS = [
    Question(
        "Q1", "Why are larger batches faster?", "grid.batch_sizes", ("epoch_time", "step_classes")
    ),
    Question("Q2", "Strong or weak scaling?", "grid.gpus", ("speedup",)),
    Question("Q3.1", "Where does the time go?", "grid.gpus", ("communication",)),
    Question("Q3.2", "How fast do gradients travel?", "interconnect", ("bandwidth",)),
    Question(
        "Q4",
        "What do large batches cost, and what helps?",
        "convergence.recipes",
        ("remedies", "learning"),
    ),
    Question("Q5", "What does set_epoch do?", "synchronization"),
    Question("Q6", "Do only gradients travel?", "synchronization"),
    Question("Q7", "Do gradients alone keep ranks alike?", "synchronization"),
    Question(
        "B", "What does int8 quantization cost?", "quantization", ("quantization_histograms",)
    ),
]
APPENDIX = {
    "limits": "Physical limits",
    "fixed-cost": "Fixed cost of a run",
    "audit": "Audit",
}
"""The titles of the parts below the questions, by the names of their tables."""


def answered(study: StudyTables, cells: pd.DataFrame, findings: Findings) -> list[dict[str, Any]]:
    """Return every question with its answer, None if not measured, verdict counts, claims, tables.

    `claims` are the configurations, and for each kind of claims its claim in each, or None.
    """
    made = []
    for question in QUESTIONS:
        answer = findings.answers.get(question.name)
        own = [one for one in findings.claims if answer and one.question.startswith(question.name)]
        counts = Counter(claim.verdict for claim in own)
        configurations = list(dict.fromkeys(claim.configuration for claim in own))
        found = {(claim.kind, claim.configuration): claim for claim in own}
        kinds = dict.fromkeys(claim.kind for claim in own)
        rows = [[found.get((kind, name)) for name in configurations] for kind in kinds]
        made.append(
            {
                "question": question,
                "answer": answer,
                "counts": [(verdict, counts[verdict]) for verdict in SYMBOLS if counts[verdict]],
                "claims": (configurations, rows),
                "tables": tables(PARTS[question.name], study, cells) if answer else [],
            }
        )
    return made


def values(
    study: StudyTables,
    findings: Findings,
    figures: Mapping[str, Any],
    runs: Path,
    data: Sequence[Path],
    partial: bool,
    replayed_from: str | None,
) -> dict[str, Any]:
    """Return the values that the templates of page and answers use.

    `figures` are SVG by name, `runs` is the folder of run records, `data` are CSV files to embed.
    Raises UserError for missing cells unless `partial`. If only Part B is answered, the rest is
    left out.
    """
    unmeasured = study.timing[study.timing["status"] == "missing"]
    missing = [fmt.cell_name(row) for row in schema.rows_of(unmeasured)]
    measured = len(missing) < len(study.timing)
    if missing and not partial:
        raise UserError(
            f"{fmt.plural(len(missing), 'cell')} of {study.study} are missing, the first is "
            f"{missing[0]}; run them, or ask for a partial report with --partial"
        )
    cells = frames.cells(study)
    questions = answered(study, cells, findings)
    marks = overview.marks(study, cells)
    mapped = cell_map.map_rows(cells, marks) if measured else []
    alone = [each["question"].name for each in questions if each["answer"]] == ["B"]
    return {
        "study": study.study,
        "headline": provenance.headline(study),
        "facts": provenance.facts(study),
        "summary": provenance.summary(study, cells, replayed_from),
        "on_cpu": schema.on_cpu(study.provenance),
        "missing": missing if measured else [],
        "machine": provenance.unfit(study.machine),
        "replayed_from": replayed_from,
        "cards": overview.cards(study, cells),
        "metrics": cell_map.metrics(cells),
        "marks": marks,
        "changing": len(frames.drifting(cells)) > 0,
        "batch_sizes": sorted({size for _, row in mapped for size in row}),
        "map": mapped,
        "recipes": provenance.recipes(study),
        "questions": questions,
        "of_the_lab": provenance.of_the_lab(study),
        "verdicts": SYMBOLS,
        "bars": cell_map.bars(cells),
        "parts": cell_map.PARTS.values(),
        "appendix": [
            (name, title, found)
            for name, title in APPENDIX.items()
            if not (alone and name == "limits") and (found := tables(PARTS[name], study, cells))
        ],
        "topology": study.topology,
        "cells": cell_pages.pages(study, cells, runs, Path(replayed_from or "", "logs"))
        if measured
        else [],
        "data": {
            path.stem: cell_pages.download(path, "text/csv")
            for path in data
            if path.read_bytes().count(b"\n") > 1
            and (not alone or path.stem.startswith("quantization"))
        },
        "sources": {name: figure.tables for name, figure in FIGURES.items()},
        "figures": figures,
    }
