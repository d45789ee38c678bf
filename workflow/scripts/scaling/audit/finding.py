"""Findings of the audit, and the tables that its checks read."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from scaling.published.mistakes import Severity
from scaling.tables import schema

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


@dataclass(frozen=True)
class Study:
    """Hold the tables under audit, and D: the number of images in the training set.

    `printed` is the table of `scaling.printed`, empty for a study that prints no figures;
    `utilization` that of `scaling.utilization`, empty for one without measured peaks.
    """

    timing: pd.DataFrame
    speedup: pd.DataFrame
    communication: pd.DataFrame
    bandwidth: pd.DataFrame
    train_images: int
    printed: pd.DataFrame = field(default_factory=lambda: schema.empty("printed"))
    utilization: pd.DataFrame = field(default_factory=lambda: schema.empty("utilization"))


Check = Callable[[Study], list[Finding]]
