"""Findings of the audit, and the tables that its checks read."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from scaling.core.grid import CELL_KEYS
from scaling.tables import schema

TOLERANCE = 1e-6
"""Relative difference that rounding explains: far above float noise, far below any real mistake."""


@dataclass(frozen=True)
class Study:
    """Hold the tables under audit.

    `utilization` is empty for one without measured peaks, `ranks` for one without steps that leave
    gradient exchange out.
    """

    timing: pd.DataFrame
    speedup: pd.DataFrame
    communication: pd.DataFrame
    bandwidth: pd.DataFrame
    utilization: pd.DataFrame = field(default_factory=lambda: schema.frame("utilization"))
    ranks: pd.DataFrame = field(default_factory=lambda: schema.frame("ranks"))


Check = Callable[[Study], pd.DataFrame]
"""From a study to a row for each finding."""


def findings(
    rows: pd.DataFrame, severity: Any, message: Any, found: Any, expected: Any
) -> pd.DataFrame:
    """A finding on the cell of each row: the figure that stands there, and what it is held against.

    Each of them is one for all rows, or has one for each.
    """
    figures = {"severity": severity, "message": message, "found": found, "expected": expected}
    return pd.DataFrame({**rows[CELL_KEYS], **figures}, index=rows.index)


def beyond(
    rows: pd.DataFrame, message: Any, reasons: list[str], found: Any, limit: Any
) -> pd.DataFrame:
    """Warnings of rows beyond a limit; remarks where there are `reasons`, which are added."""
    severity = ["info" if reason else "warning" for reason in reasons]
    added = pd.Series([f"; {reason}" if reason else "" for reason in reasons], rows.index, str)
    return findings(rows, severity, message + added, found, limit)
