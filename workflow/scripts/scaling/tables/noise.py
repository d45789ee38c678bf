"""Which differences of times are larger than the spread of the times themselves."""

import pandas as pd

from scaling.core.grid import CELL_KEYS
from scaling.tables.communication import SUBTRACTIONS
from scaling.tables.timing import with_single_gpu


def ranges_overlap(low: float, high: float, other_low: float, other_high: float) -> bool:
    """Whether two ranges share a value, so that neither lies clearly above the other."""
    return low <= other_high and other_low <= high


def with_resolution(communication: pd.DataFrame, timing: pd.DataFrame) -> pd.DataFrame:
    """`communication` with its lowest, highest and resolution seconds, and `within_noise`.

    The lowest and the highest value of T(N,b) - T(1,b)/N pair the extremes of both times, as
    `speedup.speedup` does; the resolution is the distance of the two, the ranges (maximum -
    minimum) of both terms together. NaN where a time was measured only once, or has no range.

    Within noise is a communication time whose lowest and highest value have 0 between them: by
    subtraction, where the ranges of T(N,b) and T(1,b)/N overlap, so that a time below 0 is within
    noise exactly where the speedup is above N within noise. The resolution of an instrument which
    read several times is the range of its readings, `spread_seconds` where `communication` has it,
    and its lowest and highest value are that far from its reading; that of one which read once is
    unknown: NaN, never `within_noise`.
    """
    several = with_single_gpu(timing[timing["gpus"] > 1], timing, "batch_size")
    repeated = (several["count"] > 1) & (several["single_count"] > 1)
    found = []
    for estimate, seconds in SUBTRACTIONS.items():
        ends = {
            f"{end}_seconds": (
                several[f"{seconds}_{own}"]
                - several[f"single_{seconds}_{single}"] / several["gpus"]
            )
            .where(repeated)
            .astype(float)
            for end, own, single in (("lowest", "min", "max"), ("highest", "max", "min"))
        }
        found.append(several[CELL_KEYS].assign(estimate=estimate, **ends))
    table = communication.merge(pd.concat(found), how="left", on=[*CELL_KEYS, "estimate"])
    table["resolution_seconds"] = table["highest_seconds"] - table["lowest_seconds"]
    if "spread_seconds" in table:
        seconds, spread = table["communication_seconds"], table["spread_seconds"]
        table["resolution_seconds"] = table["resolution_seconds"].fillna(spread)
        table["lowest_seconds"] = table["lowest_seconds"].fillna(seconds - spread)
        table["highest_seconds"] = table["highest_seconds"].fillna(seconds + spread)
    around = (table["lowest_seconds"] <= 0) & (table["highest_seconds"] >= 0)
    return table.assign(within_noise=around)
