"""One sentence of the summary, and what the sentences share."""

from dataclasses import dataclass
from typing import Any

import pandas as pd

from scaling.core import numbers as fmt


@dataclass(frozen=True)
class Finding:
    """One or two sentences, and the table and cells they can be checked in.

    `supported` is False when the table lacks the evidence and the sentence says what is missing.
    """

    text: str
    source: str
    supported: bool = True


def measured(table: pd.DataFrame, column: str) -> pd.DataFrame:
    """The rows of cells that are ok and have a value in `column`."""
    return table[(table["status"] == "ok") & table[column].notna()]


def part_of(part: float, whole: float) -> str:
    """`0.12 of 0.5 s`."""
    return f"{fmt.significant(part)} of {fmt.seconds(whole)}"


def source(table: str, *cells: Any) -> str:
    """Where a sentence can be checked: `timing.csv: course/ddp, 4 GPUs, b = 512`."""
    return f"{table}.csv: " + "; ".join(fmt.cell_name(cell) for cell in cells)
