"""The report's section on the audit: what was checked, and what it found."""

from collections.abc import Callable
from typing import Any

import pandas as pd

from scaling import report_format as fmt
from scaling.audit import CHECKS
from scaling.report_table import Entry, Table, head, text
from scaling.result_tables import StudyTables

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


def findings(tables: StudyTables) -> dict[str, Any]:
    """The findings in one table, errors first, and every check with the number of its findings."""
    order = tables.audit["severity"].map(list(SEVERITIES).index)
    ordered = tables.audit.loc[order.sort_values(kind="stable").index]
    table = Table(
        title="Findings",
        columns=["severity", "cell", "finding", "found", "expected"],
        rows=[_row(row) for row in ordered.itertuples()],
        text_columns=frozenset({"cell", "finding"}),
    )
    checks = Table(
        title="Checks",
        columns=["check", "what it holds the tables against", "findings"],
        rows=[_check(check, tables.audit) for check in CHECKS],
        text_columns=frozenset({"what it holds the tables against"}),
    )
    return {
        "counts": counts(tables.audit),
        "findings": [table] if len(ordered) else [],
        "checks": checks,
    }


def _row(row: Any) -> list[Entry]:
    return [
        head(SEVERITIES[row.severity]),
        text("whole study" if pd.isna(row.gpus) else fmt.cell_name(row)),
        text(row.message.replace("_", " ")),
        Entry(_figure(row.found)),
        Entry(_figure(row.expected)),
    ]


def _check(check: Callable[..., Any], audit: pd.DataFrame) -> list[Entry]:
    rule = (check.__doc__ or "").partition("\n\n")[0]
    return [
        head(check.__name__.replace("_", " ")),
        text(" ".join(rule.split())),
        Entry(str((audit["check"] == check.__name__).sum())),
    ]


def _figure(value: Any) -> str:
    """A figure of the audit; whole numbers as such."""
    if isinstance(value, int | float):
        return f"{value:,.0f}" if value == round(value, 9) // 1 else fmt.significant(value)
    return str(value)
