"""The report's section on the audit: what was checked, and what it found."""

from collections.abc import Callable
from typing import Any

import pandas as pd

from scaling.audit.checks import CHECKS
from scaling.core import numbers as fmt
from scaling.report.table import Table, TableCell, head, text
from scaling.tables.derived import DerivedTables

SEVERITIES = {"error": "error", "warning": "warning", "info": "remark"}


def counts(audit: pd.DataFrame) -> str:
    """`1 error, 2 warnings, 1 remark`, or `no findings`."""
    found = audit["severity"].value_counts()
    parts = [
        fmt.plural(int(found[severity]), name)
        for severity, name in SEVERITIES.items()
        if severity in found
    ]
    return ", ".join(parts) or "no findings"


def findings(tables: DerivedTables) -> dict[str, Any]:
    """The findings in one table, and every check with the number of its findings."""
    return {
        "counts": counts(tables.audit),
        "findings": findings_table("Findings", tables.audit),
        "checks": checks_table(tables.audit),
    }


def findings_table(title: str, audit: pd.DataFrame) -> list[Table]:
    """One table, errors first, each finding once with its cells; none when nothing was found."""
    rows: list[list[TableCell]] = []
    for severity, name in SEVERITIES.items():
        same_severity = audit[audit["severity"] == severity]
        for message, cells in same_severity.groupby("message", sort=False):
            rows += _rows(name, str(message).replace("_", " "), cells)
    table = Table(
        title=title,
        columns=["severity", "finding", "cell", "found", "expected"],
        rows=rows,
        text_columns=frozenset({"cell", "finding"}),
    )
    return [table] if rows else []


def checks_table(audit: pd.DataFrame) -> Table:
    """Every check with what it judges and the number of its findings in `audit`."""
    return Table(
        title="Checks",
        columns=["check", "what it holds the tables against", "findings"],
        rows=[_check(check, audit) for check in CHECKS],
        text_columns=frozenset({"what it holds the tables against"}),
    )


def _rows(severity: str, message: str, cells: pd.DataFrame) -> list[list[TableCell]]:
    """The cells of one finding below each other; in one line where all say the same."""
    figures = [
        [TableCell(figure) for figure in fmt.told_apart(row.found, row.expected)]
        for row in cells.itertuples()
    ]
    places = [text(_place(row)) for row in cells.itertuples()]
    if all(pair == figures[0] for pair in figures):
        figures = figures[:1]
        places = [text("; ".join(place.text for place in places))]
    lines = [[place, *pair] for place, pair in zip(places, figures, strict=True)]
    lines[0] = [head(severity, len(lines)), text(message, len(lines)), *lines[0]]
    return lines


def _place(row: Any) -> str:
    return "whole study" if pd.isna(row.gpus) else fmt.cell_name(row)


def _check(check: Callable[..., Any], audit: pd.DataFrame) -> list[TableCell]:
    rule = (check.__doc__ or "").partition("\n\n")[0]
    return [
        head(check.__name__.replace("_", " ")),
        text(" ".join(rule.split())),
        TableCell(str((audit["check"] == check.__name__).sum())),
    ]
