"""The page on published studies: what each printed, what follows from it, and what is wrong."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

import pandas as pd

from scaling.audit.derive import PublishedTables
from scaling.core import numbers as fmt
from scaling.published.definitions import MISTAKES
from scaling.published.printed_figures import WITHIN
from scaling.published.study import PublishedStudy
from scaling.report import frames
from scaling.report.table import EMPTY, Table, TableCell, tables
from scaling.tables import schema

ANY_PEAK = "bandwidth / a constant"


@dataclass(frozen=True)
class StudySection:
    """One study of a folder: its tables, what it says of itself, and what the page shows of it.

    `id` is its place on the page: a folder has no two studies of one name.
    """

    id: str
    tables: PublishedTables
    folder: str
    title: str
    facts: list[tuple[str, str]]
    doubts: list[str]
    counts: str
    shown: list[Table]


def section(study: PublishedTables, folder: str) -> StudySection:
    """The section of one study of `folder`."""
    source = study.source
    own = {
        "printed": printed(study),
        "printed_quantization": source.quantization,
        "printed_accuracy": source.accuracy,
    }

    def frame(name: str) -> pd.DataFrame:
        return own[name] if name in own else frames.frame(study, name)

    name = quote(f"{folder}/{study.study}")
    shown = [*tables("audit", frame), *tables("published", frame), *tables("prediction", frame)]
    return StudySection(
        id=name,
        tables=study,
        folder=folder,
        title=source.description.title or study.study,
        facts=[("Folder", folder), *source_facts(source)],
        doubts=source.description.doubts,
        counts=frames.audit_counts(study.audit),
        shown=[replace(table, name=f"{name}-{table.name}") for table in shown],
    )


def context(
    sections: Sequence[StudySection], refused: Sequence[tuple[str, str]] = ()
) -> dict[str, Any]:
    """What the template shows of all studies together, and of each.

    `refused` are the folders that could not be read, each with the sentence that says why.
    """
    audits = pd.concat([schema.frame("audit"), *(one.tables.audit for one in sections)])
    everything = {"overview": overview(sections), "mistakes": mistakes(sections)}
    everything["checks"] = frames.checks(audits)
    shown = tables("published-all", everything.__getitem__)
    if not sections:
        shown = [Table("overview", "All studies", [("study", ""), ("folder", ""), ("", "")], [])]
    for folder, sentence in refused:
        width = len(shown[0].columns) - 3
        cells = [TableCell(EMPTY), TableCell(folder), TableCell(f"cannot be read: {sentence}")]
        shown[0].rows.append([*cells, *([TableCell("")] * width)])
    return {"tables": shown, "studies": sections}


def _derived_figures(study: PublishedTables) -> pd.DataFrame:
    """What the study printed for several GPUs; on one, every speedup is 1."""
    found = study.printed
    return found[(found["gpus"] > 1) & (found["quantity"] != "epoch_seconds")]


def overview(sections: Sequence[StudySection]) -> pd.DataFrame:
    """A row for each study: its cells, how many printed figures hold, and its findings."""
    rows = []
    for one in sections:
        found = _derived_figures(one.tables)
        row: dict[str, Any] = {"study": one.tables.study, "folder": one.folder, "audit": one.counts}
        row |= {"cells": len(one.tables.timing), "printed": len(found)}
        for name, verdict in (("own", "reproduced"), ("ours", "agrees")):
            row[name] = int((found[verdict] == "exactly").sum())
            near = int((found[verdict] == "nearly").sum())
            row[f"nearly_{name}"] = f"{near} more {WITHIN}" if near else ""
        rows.append(row)
    return pd.DataFrame(rows)


def mistakes(sections: Sequence[StudySection]) -> pd.DataFrame:
    """A row for each mistake that occurs: what it is, and in how many figures of which study."""
    rows = []
    for name, mistake in MISTAKES.items():
        places = []
        for one in sections:
            count = sum(name in made.split(";") for made in one.tables.printed["mistakes"])
            if count:
                figures = fmt.plural(count, "figure")
                places.append(f"{one.folder}/{one.tables.study} ({figures})")
        if places:
            severity = frames.SEVERITIES[mistake.severity]
            sentence = f"The figure {mistake.sentence.format(rule=ANY_PEAK)}."
            rows.append([name, severity, sentence, ", ".join(places)])
    return pd.DataFrame(rows, columns=["mistake", "severity", "sentence", "where"])


def printed(study: PublishedTables) -> pd.DataFrame:
    """Every printed figure of several GPUs, as printed, with what explains it in words."""
    found = _derived_figures(study)
    rule = ["quantity", "strategy", "definition"]
    found = found.sort_values(rule, kind="stable")
    rows = list(found.itertuples())
    decimals = [max(0, -round(math.log10(row.last_digit))) for row in rows]
    return found.assign(
        printed_text=[f"{row.printed:,.{d}f}" for row, d in zip(rows, decimals, strict=True)],
        explanation=[_explained(row) for row in rows],
    )


def _explained(row: Any) -> str:
    explained = row.mistakes.replace("_", " ").split(";") if row.mistakes else []
    if row.inherited:
        explained.append(f"its communication time: {row.inherited.replace('_', ' ')}")
    if row.agrees == "nearly" and not explained:
        explained = [f"rounding, or loading in or out: {WITHIN}"]
    return ", ".join(explained)


def source_facts(source: PublishedStudy) -> list[tuple[str, str]]:
    """(what, value) pairs on what a study says of itself."""
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
