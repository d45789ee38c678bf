"""The audit of studies that people hand in: as text for the terminal, and as a page."""

import traceback
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from scaling.audit.derive import derive
from scaling.core import numbers as fmt
from scaling.core.errors import UserError
from scaling.published import study as published
from scaling.report import page as html
from scaling.report import published as report_published
from scaling.report.frames import SEVERITIES, audit_counts
from scaling.report.published import StudySection


@dataclass(frozen=True)
class Submission:
    """One folder: its studies, or the sentence that says why it cannot be read."""

    folder: Path
    studies: list[StudySection]
    refusal: str = ""


def read(folders: Iterable[Path], train_images: int) -> list[Submission]:
    """Every folder's studies, derived and audited; one that cannot be read hinders no other.

    A folder may also be a single CSV file. One named twice is read once.
    """
    return [_read(folder, train_images) for folder in dict.fromkeys(folders)]


def _read(folder: Path, train_images: int) -> Submission:
    try:
        found = [derive(study, train_images) for study in published.read_folder(folder)]
        return Submission(folder, [report_published.section(one, str(folder)) for one in found])
    except UserError as error:
        return Submission(folder, [], str(error))
    except Exception as error:  # A defect of ours in one study must not cost the others theirs.
        traceback.print_exc()
        told = f"{folder}: the audit itself failed ({error!r}); please report it"
        return Submission(folder, [], told)


def failed(submissions: list[Submission]) -> list[str]:
    """The folders that cannot be read, and those of a study with an error."""
    return [
        str(submission.folder)
        for submission in submissions
        if submission.refusal
        or any((study.tables.audit["severity"] == "error").any() for study in submission.studies)
    ]


def as_text(submissions: list[Submission]) -> str:
    """Every finding, in a line for each cell, then a line for each study."""
    lines, summary = [], []
    for submission in submissions:
        if submission.refusal:
            summary.append((str(submission.folder), "", f"cannot be read: {submission.refusal}"))
        for study in (section.tables for section in submission.studies):
            lines += [f"{study.study} ({submission.folder})", *_findings(study.audit), ""]
            summary.append((str(submission.folder), study.study, audit_counts(study.audit)))
    widths = [max(len(row[column]) for row in summary) for column in (0, 1)]
    table = [f"{a:<{widths[0]}}  {b:<{widths[1]}}  {verdict}" for a, b, verdict in summary]
    return "\n".join([*lines, *table])


def page(submissions: list[Submission], template: Path) -> str:
    """The page of all of them, as HTML."""
    studies = [study for submission in submissions for study in submission.studies]
    refused = [(str(one.folder), one.refusal) for one in submissions if one.refusal]
    return html.render(
        template,
        title=f"Audit of {len(studies)} {'study' if len(studies) == 1 else 'studies'}",
        context=report_published.context(studies, refused),
        figure=None,
    )


def _findings(audit: pd.DataFrame) -> list[str]:
    """A line for each cell with a finding, errors first; one where many cells say the same."""
    lines = []
    for severity, name in SEVERITIES.items():
        same = audit[audit["severity"] == severity]
        for (message, found, expected), cells in same.groupby(
            ["message", "found", "expected"], sort=False, dropna=False
        ):
            places = [fmt.cell_name(cell) for cell in cells.itertuples()]
            place = places[0] if len(places) == 1 else fmt.plural(len(places), "cell")
            figures = "found {}, expected {}".format(*fmt.told_apart(found, expected))
            lines.append(f"  {name:<7}  {place}: {message.replace('_', ' ')}: {figures}")
    return lines or ["  no findings"]
