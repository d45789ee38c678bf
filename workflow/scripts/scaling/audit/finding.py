"""One finding of the audit."""

from dataclasses import dataclass
from typing import Any, Literal

Severity = Literal["error", "warning", "info"]
TOLERANCE = 1e-6
"""Relative difference that rounding explains: far above float noise, far below any real mistake."""


@dataclass(frozen=True)
class Finding:
    """One thing found in one cell: the figure that stands there, and what it is held against."""

    recipe: str
    strategy: str
    gpus: int
    batch_size: int
    severity: Severity
    message: str
    found: float
    expected: float


def finding(row: Any, severity: Severity, message: str, found: float, expected: float) -> Finding:
    """The finding on the cell of a table's row."""
    cell = (row.recipe, row.strategy, row.gpus, row.batch_size)
    return Finding(*cell, severity, message, float(found), float(expected))
