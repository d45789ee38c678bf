"""The report's section on the audit: what was checked, and what it found."""

from typing import Any

import pandas as pd

from scaling.audit.checks import CHECKS
from scaling.core import numbers as fmt
from scaling.report.table import Column, Table, make_table
from scaling.tables.schema import DerivedTables

SEVERITIES = {"error": "error", "warning": "warning", "info": "remark"}
FINDING = ("severity", "message")
FINDINGS = [
    Column("severity", "severity", SEVERITIES.__getitem__, "head", per=FINDING),
    Column("finding", "message", lambda name: name.replace("_", " "), "text", per=FINDING),
    Column("cell", "places", "; ".join, "text"),
    Column("found", lambda row: row.figures[0]),
    Column("expected", lambda row: row.figures[1]),
]
CHECK_COLUMNS = [
    Column("check", "check", lambda name: name.replace("_", " "), "head"),
    Column("what it holds the tables against", "rule", kind="text"),
    Column("findings", "findings", fmt.integer),
]


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
    """One table, errors first, each finding once with its cells; none when nothing was found.

    Cells of which all say the same are in one line.
    """
    lines = []
    order = audit["severity"].map(list(SEVERITIES).index)
    for key, cells in audit.assign(order=order).groupby(["order", "message"], sort=False):
        place = [
            "whole study" if pd.isna(cell.gpus) else fmt.cell_name(cell)
            for cell in cells.itertuples()
        ]
        figures = [fmt.told_apart(cell.found, cell.expected) for cell in cells.itertuples()]
        some = list(zip([[name] for name in place], figures, strict=True))
        alike = len(set(figures)) == 1
        lines += [(*key, *line) for line in ([(place, figures[0])] if alike else some)]
    columns = ["order", "message", "places", "figures"]
    rows = pd.DataFrame(lines, columns=columns).sort_values("order", kind="stable")
    rows["severity"] = rows["order"].map(list(SEVERITIES).__getitem__)
    return [make_table(title, rows, FINDINGS)] if lines else []


def checks_table(audit: pd.DataFrame) -> Table:
    """Every check with what it judges and the number of its findings in `audit`."""
    rows = [
        {
            "check": check.__name__,
            "rule": " ".join((check.__doc__ or "").partition("\n\n")[0].split()),
            "findings": (audit["check"] == check.__name__).sum(),
        }
        for check in CHECKS
    ]
    return make_table("Checks", pd.DataFrame(rows), CHECK_COLUMNS)
