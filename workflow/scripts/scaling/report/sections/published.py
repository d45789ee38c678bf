"""The page on published studies: what each printed, what follows from it, and what is wrong."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import pandas as pd

from scaling.audit.printed import WORDS
from scaling.core import numbers as fmt
from scaling.published.derive import PublishedTables
from scaling.published.mistakes import MISTAKES
from scaling.published.printed_figures import WITHIN
from scaling.published.study import PublishedStudy
from scaling.report.finding import Finding
from scaling.report.sections import communication, scaling
from scaling.report.sections import prediction as report_prediction
from scaling.report.sections.audit import SEVERITIES, checks_table, counts, findings_table
from scaling.report.sections.comparison import what_is_compared
from scaling.report.table import Table, TableCell, head, status, text
from scaling.tables import comparison

ANY_PEAK = "bandwidth / a constant"


@dataclass(frozen=True)
class StudySection:
    """One study of a folder: its tables, what it says of itself, and what the page shows of it."""

    tables: PublishedTables
    folder: str
    title: str
    facts: list[tuple[str, str]]
    doubts: list[str]
    counts: str
    table_1: list[Table]
    views: list[tuple[Finding, Table]]
    derived: list[Table]
    prediction: dict[str, Any]
    printed: list[Table]
    findings: list[Table]
    other: list[Table]

    @property
    def id(self) -> str:
        """Its place on the page: a folder has no two studies of one name."""
        return quote(f"{self.folder}/{self.tables.study}")


def context(
    sections: list[StudySection], refused: Sequence[tuple[str, str]] = ()
) -> dict[str, Any]:
    """What the template shows of all studies together, and of each.

    `refused` are the folders that could not be read, each with the sentence that says why.
    """
    studies = [section.tables for section in sections]
    audits = pd.concat([study.audit for study in studies]) if studies else pd.DataFrame()
    return {
        "overview": overview(sections, refused),
        "mistakes": mistakes(sections),
        "compared": [_compared(studies)] if studies else [],
        "studies": sections,
        "checks": [checks_table(audits)] if studies else [],
    }


def _compared(studies: list[PublishedTables]) -> Table:
    table = pd.concat(
        [
            comparison.of_study(
                *(study.study, study.timing, study.speedup, study.bandwidth),
                *(study.source.model, study.source.description.hardware),
            )
            for study in studies
        ],
        ignore_index=True,
    )
    return what_is_compared(table, own=table[:0])


def overview(sections: list[StudySection], refused: Sequence[tuple[str, str]]) -> Table:
    """One row per study: its cells, how many printed figures hold, and its findings.

    Then one for each folder that could not be read.
    """
    rows = []
    for one in sections:
        study = one.tables
        printed = _derived_figures(study)
        rows.append(
            [
                head(study.study),
                text(one.folder),
                TableCell(str(len(study.timing))),
                TableCell(str(len(printed))),
                _share(printed, "reproduced"),
                _share(printed, "agrees"),
                text(counts(study.audit)),
            ]
        )
    for folder, sentence in refused:
        rows.append([head("–"), text(folder), status(f"cannot be read: {sentence}", columns=5)])
    return Table(
        title="All studies",
        columns=[
            *("study", "folder", "cells", "derived figures printed"),
            *("as its own definition gives", "as ours gives", "audit"),
        ],
        rows=rows,
        text_columns=frozenset({"folder", "audit"}),
    )


def mistakes(sections: list[StudySection]) -> Table:
    """Every mistake that occurs: what it is, and in how many figures of each study."""
    names = Counter(one.tables.study for one in sections)
    rows = []
    for name, mistake in MISTAKES.items():
        places = []
        for one in sections:
            study = one.tables
            found = sum(name in made.split(";") for made in study.printed["mistakes"])
            of = study.study if names[study.study] == 1 else f"{study.study} in {one.folder}"
            places += [f"{of} ({fmt.plural(found, 'figure')})"] if found else []
        if places:
            rows.append(
                [
                    head(_label(name)),
                    text(SEVERITIES[mistake.severity]),
                    text(f"The printed figure {mistake.sentence.format(rule=ANY_PEAK)}."),
                    text(", ".join(places)),
                ]
            )
    columns = ["mistake", "gravity", "what happened", "where"]
    return Table(
        title="What explains the differences",
        columns=columns,
        rows=rows,
        notes=["a figure with several mistakes counts once for each of them"],
        text_columns=frozenset(columns),
    )


def section(study: PublishedTables, folder: str) -> StudySection:
    """The section of one study of `folder`."""
    source = study.source
    scaled = scaling.speedup(study)
    return StudySection(
        tables=study,
        folder=folder,
        title=source.description.title or study.study,
        facts=[("Folder", folder), *_facts(source)],
        doubts=source.description.doubts,
        counts=counts(study.audit),
        table_1=scaled["table_1"],
        views=scaled["views"],
        derived=[
            *communication.compute_and_communication(study)["tables"],
            *communication.bandwidths(study),
        ],
        prediction=report_prediction.prediction(study),
        printed=_printed(study),
        findings=findings_table(f"Findings: {study.study}", study.audit),
        other=[*_quantization(source), *_accuracy(source)],
    )


def _facts(source: PublishedStudy) -> list[tuple[str, str]]:
    parameters = "parameters not stated"
    if source.parameters is not None:
        size = fmt.data(source.gradient_bytes)
        parameters = f"{source.parameters:,} parameters, so {size} of float32 gradients"
    return [
        ("Hardware", source.description.hardware),
        ("Strategy", ", ".join(source.strategies)),
        ("Model", f"{source.model}, {parameters}"),
        ("Units", source.description.units),
    ]


def _derived_figures(study: PublishedTables) -> pd.DataFrame:
    """What the study printed for several GPUs; on one, every speedup is 1."""
    printed = study.printed
    return printed[(printed["gpus"] > 1) & (printed["quantity"] != "epoch_seconds")]


def _share(printed: pd.DataFrame, column: str) -> TableCell:
    exact, near = ((printed[column] == verdict).sum() for verdict in ("exactly", "nearly"))
    return TableCell(str(exact), detail=f"{near} more {WITHIN}" if near else "")


def _printed(study: PublishedTables) -> list[Table]:
    printed = _derived_figures(study)
    lines = []
    for (quantity, strategy, definition), same in printed.groupby(
        ["quantity", "strategy", "definition"], sort=False
    ):
        rows = [_figure(row) for row in same.itertuples()]
        rule = str(definition) or "no one definition gives half of these figures"
        lead = [head(WORDS[str(quantity)], len(rows)), text(f"{strategy}: {rule}", len(rows))]
        rows[0] = [*lead, *rows[0]]
        lines += rows
    table = Table(
        title=f"Printed against derived: {study.study}",
        columns=[
            *("figure", "definition it follows", "GPUs × b", "printed"),
            *("by that definition", "by ours", "printed / ours", "explained by"),
        ],
        rows=lines,
        text_columns=frozenset({"definition it follows", "explained by"}),
    )
    return [table] if lines else []


def _figure(row: Any) -> list[TableCell]:
    decimals = max(0, -round(math.log10(row.last_digit)))
    verdict = {"nearly": (WITHIN,), "no": ("not reproduced",)}.get(row.reproduced, ())
    explained = [", ".join(map(_label, row.mistakes.split(";")))] if row.mistakes else []
    if row.inherited:
        of_time = ", ".join(map(_label, row.inherited.split(";")))
        explained.append(f"its communication time: {of_time}")
    if row.agrees == "nearly" and not explained:
        explained = [f"rounding, or loading in or out: {WITHIN}"]
    return [
        TableCell(f"{row.gpus} × {row.batch_size}"),
        TableCell(f"{row.printed:,.{decimals}f}"),
        TableCell(fmt.significant(row.by_definition, 4), flags=verdict),
        TableCell(fmt.significant(row.derived, 4), detail=row.note),
        _factor(row),
        text("; ".join(explained) or "–"),
    ]


def _factor(row: Any) -> TableCell:
    if row.derived < 0:
        return status("ours is negative")
    return TableCell("–" if pd.isna(row.factor) else fmt.times(row.factor))


def _label(mistake: str) -> str:
    return mistake.replace("_", " ")


def _quantization(source: PublishedStudy) -> list[Table]:
    rows = [
        [head(row.stage), TableCell(f"{row.accuracy_percent} %"), text(row.where)]
        for row in source.quantization.itertuples()
    ]
    columns = ["stage", "accuracy", "where it is printed"]
    words = frozenset({"where it is printed"})
    title = f"Int8 quantization as printed: {source.name}"
    return [Table(title, columns, rows, text_columns=words)] if rows else []


def _accuracy(source: PublishedStudy) -> list[Table]:
    rows = [
        [
            head(f"{row.strategy}, {fmt.gpus(row.gpus)}, b\u00a0=\u00a0{row.batch_size}"),
            TableCell(str(row.epoch)),
            TableCell(str(row.train_loss)),
            TableCell(f"{100 * row.train_accuracy:.2f} %"),
        ]
        for row in source.accuracy.itertuples()
    ]
    columns = ["cell", "epoch", "training loss", "training accuracy"]
    return [Table(f"Learning as printed: {source.name}", columns, rows)] if rows else []
