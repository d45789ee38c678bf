"""Which differences of times are larger than the spread of the times themselves."""

import pandas as pd

from scaling.core.grid import CELL_KEYS
from scaling.tables.communication import SUBTRACTIONS
from scaling.tables.timing import with_single_gpu


def ranges_overlap(low: float, high: float, other_low: float, other_high: float) -> bool:
    """Whether two ranges share a value, so that neither lies clearly above the other."""
    return low <= other_high and other_low <= high


def communication_resolution(timing: pd.DataFrame) -> pd.DataFrame:
    """How uncertain each communication time by subtraction is, in seconds.

    Columns recipe, strategy, gpus, batch_size, estimate, `lowest_seconds`, `highest_seconds`,
    `resolution_seconds`, one row per multi-GPU cell of `timing` and estimate by subtraction. The
    lowest and the highest value of T(N,b) - T(1,b)/N pair the extremes of both times, as
    `speedup.speedup` does; the resolution is the distance of the two, the ranges (maximum -
    minimum) of both terms together. NaN where a time was measured only once, or has no range.
    """
    table = with_single_gpu(timing[timing["gpus"] > 1], timing, "batch_size")
    repeated = (table["count"] > 1) & (table["single_count"] > 1)
    found = []
    for estimate, seconds in SUBTRACTIONS.items():
        lowest, highest = (
            (table[f"{seconds}_{own}"] - table[f"single_{seconds}_{single}"] / table["gpus"])
            .where(repeated)
            .astype(float)
            for own, single in (("min", "max"), ("max", "min"))
        )
        ends = {"lowest_seconds": lowest, "highest_seconds": highest}
        cells = table[CELL_KEYS].assign(estimate=estimate, **ends)
        found.append(cells.assign(resolution_seconds=highest - lowest))
    return pd.concat(found, ignore_index=True)


def with_resolution(communication: pd.DataFrame, timing: pd.DataFrame) -> pd.DataFrame:
    """`communication` with the columns of `communication_resolution` and `within_noise`.

    Within noise is a communication time whose lowest and highest value have 0 between them: by
    subtraction, where the ranges of T(N,b) and T(1,b)/N overlap, so that a time below 0 is within
    noise exactly where the speedup is above N within noise. The resolution of an instrument which
    read several times is the range of its readings, `spread_seconds` where `communication` has it,
    and its lowest and highest value are that far from its reading; that of one which read once is
    unknown: NaN, never `within_noise`.
    """
    keys = [*CELL_KEYS, "estimate"]
    table = communication.merge(communication_resolution(timing), how="left", on=keys)
    seconds = table["communication_seconds"]
    if "spread_seconds" in table:
        spread = table["spread_seconds"]
        table["resolution_seconds"] = table["resolution_seconds"].fillna(spread)
        table["lowest_seconds"] = table["lowest_seconds"].fillna(seconds - spread)
        table["highest_seconds"] = table["highest_seconds"].fillna(seconds + spread)
    around = (table["lowest_seconds"] <= 0) & (table["highest_seconds"] >= 0)
    return table.assign(within_noise=around)
