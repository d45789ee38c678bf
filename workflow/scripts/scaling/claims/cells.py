"""What claims on the times of two cells share."""

from typing import Any

import pandas as pd

from scaling.tables import noise


def row_at(table: pd.DataFrame, index: Any) -> Any:
    """The row of `table` with this label."""
    return next(table.loc[[index]].itertuples())


def batch(cell: Any) -> str:
    """`b = 512`."""
    return f"b\u00a0=\u00a0{int(cell.batch_size)}"


def apart(one: Any, other: Any, column: str) -> bool:
    """Whether two cells' times, each measured several times, have disjoint ranges."""
    ranges = [getattr(cell, f"{column}_{end}") for cell in (one, other) for end in ("min", "max")]
    return min(one.count, other.count) > 1 and not noise.ranges_overlap(*ranges)


def times_of(column: str, **cells: Any) -> dict[str, Any]:
    """The figures of each named cell: batch size, seconds and their range, count."""
    figures: dict[str, Any] = {}
    for name, cell in cells.items():
        figures[f"{name}_batch_size"] = cell.batch_size
        for part in (column, f"{column}_min", f"{column}_max", "count"):
            figures[f"{name}_{part}"] = getattr(cell, part)
    return figures
