"""The page on published studies: what each printed, what follows from it, and what is wrong."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import pandas as pd

from scaling.audit.derive import PublishedTables
from scaling.audit.printed import WORDS
from scaling.core import numbers as fmt
from scaling.published.mistakes import MISTAKES
from scaling.published.printed_figures import WITHIN
from scaling.published.study import PublishedStudy
from scaling.report.sections import communication, scaling
from scaling.report.sections import prediction as report_prediction
from scaling.report.sections.audit import SEVERITIES, checks_table, counts, findings_table
from scaling.report.sections.comparison import what_is_compared
from scaling.report.table import Column, Table, head, make_table, status, text
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
    views: list[tuple[Any, Table]]
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
    """Make a row per study: its cells, how many printed figures hold, and its findings.

    Then one for each folder that could not be read.
    """
    rows = pd.DataFrame({"section": sections})
    table = make_table("All studies", rows, OVERVIEW)
    table.rows.extend(
        [head("–"), text(folder), status(f"cannot be read: {sentence}", columns=5)]
        for folder, sentence in refused
    )
    return table


def _given(label: str, verdict: str) -> Column:
    """Make a column of how many printed figures a definition gives, by the column `verdict`."""

    def count(row: Any, closeness: str) -> int:
        return int((_derived_figures(row.section.tables)[verdict] == closeness).sum())

    def nearly(row: Any) -> str:
        near = count(row, "nearly")
        return f"{near} more {WITHIN}" if near else ""

    return Column(label, lambda row: count(row, "exactly"), detail=nearly)


OVERVIEW = [
    Column("study", lambda row: row.section.tables.study, kind="head"),
    Column("folder", lambda row: row.section.folder, kind="text"),
    Column("cells", lambda row: len(row.section.tables.timing)),
    Column("derived figures printed", lambda row: len(_derived_figures(row.section.tables))),
    _given("as its own definition gives", "reproduced"),
    _given("as ours gives", "agrees"),
    Column("audit", lambda row: row.section.counts, kind="text"),
]


def mistakes(sections: list[StudySection]) -> Table:
    """Make a row for every mistake that occurs: what it is, and in how many figures of a study."""
    names = Counter(one.tables.study for one in sections)
    rows = []
    for name in MISTAKES:
        places = []
        for one in sections:
            study = one.tables
            found = sum(name in made.split(";") for made in study.printed["mistakes"])
            of = study.study if names[study.study] == 1 else f"{study.study} in {one.folder}"
            places += [f"{of} ({fmt.plural(found, 'figure')})"] if found else []
        if places:
            rows.append({"name": name, "where": ", ".join(places)})
    note = "a figure with several mistakes counts once for each of them"
    found_ones = pd.DataFrame(rows, columns=["name", "where"])
    return make_table("What explains the differences", found_ones, EXPLAINED, notes=[note])


EXPLAINED = [
    Column("mistake", lambda row: _label(row.name), kind="head"),
    Column("gravity", lambda row: SEVERITIES[MISTAKES[row.name].severity], kind="text"),
    Column(
        "what happened",
        lambda row: f"The printed figure {MISTAKES[row.name].sentence.format(rule=ANY_PEAK)}.",
        kind="text",
    ),
    Column("where", "where", kind="text"),
]


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


def _printed(study: PublishedTables) -> list[Table]:
    printed = _derived_figures(study)
    groups = [same for _, same in printed.groupby(list(_RULE), sort=False)]
    title = f"Printed against derived: {study.study}"
    return [make_table(title, pd.concat(groups), FIGURES)] if groups else []


def _explained(row: Any) -> str:
    explained = [", ".join(map(_label, row.mistakes.split(";")))] if row.mistakes else []
    if row.inherited:
        of_time = ", ".join(map(_label, row.inherited.split(";")))
        explained.append(f"its communication time: {of_time}")
    if row.agrees == "nearly" and not explained:
        explained = [f"rounding, or loading in or out: {WITHIN}"]
    return "; ".join(explained) or "–"


_RULE = ("quantity", "strategy", "definition")
FIGURES = [
    Column("figure", lambda row: WORDS[row.quantity], kind="head", per=_RULE),
    Column(
        "definition it follows",
        lambda row: (
            f"{row.strategy}: {row.definition or 'no one definition gives half of these figures'}"
        ),
        kind="text",
        per=_RULE,
    ),
    Column("GPUs × b", lambda row: f"{row.gpus} × {row.batch_size}"),
    Column(
        "printed",
        lambda row: f"{row.printed:,.{max(0, -round(math.log10(row.last_digit)))}f}",
    ),
    Column(
        "by that definition",
        lambda row: fmt.significant(row.by_definition, 4),
        flags=lambda row: {"nearly": (WITHIN,), "no": ("not reproduced",)}.get(row.reproduced, ()),
    ),
    Column("by ours", lambda row: fmt.significant(row.derived, 4), detail=lambda row: row.note),
    Column(
        "printed / ours",
        "factor",
        fmt.times,
        instead=lambda row: status("ours is negative") if row.derived < 0 else None,
    ),
    Column("explained by", _explained, kind="text"),
]


def _label(mistake: str) -> str:
    return mistake.replace("_", " ")


def _quantization(source: PublishedStudy) -> list[Table]:
    title = f"Int8 quantization as printed: {source.name}"
    return [make_table(title, source.quantization, STAGES)] if len(source.quantization) else []


STAGES = [
    Column("stage", "stage", kind="head"),
    Column("accuracy", "accuracy_percent", lambda value: f"{value} %"),
    Column("where it is printed", "where", kind="text"),
]


def _accuracy(source: PublishedStudy) -> list[Table]:
    title = f"Learning as printed: {source.name}"
    return [make_table(title, source.accuracy, LEARNING)] if len(source.accuracy) else []


LEARNING = [
    Column(
        "cell",
        lambda row: f"{row.strategy}, {fmt.gpus(row.gpus)}, b\u00a0=\u00a0{row.batch_size}",
        kind="head",
    ),
    Column("epoch", "epoch"),
    Column("training loss", "train_loss"),
    Column("training accuracy", lambda row: f"{100 * row.train_accuracy:.2f} %"),
]
