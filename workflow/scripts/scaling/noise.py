"""Which differences of times are larger than the spread of the times themselves."""

import pandas as pd

from scaling.communication import SUBTRACTIONS
from scaling.tables import CELL_KEYS, with_single_gpu


def ranges_overlap(low: float, high: float, other_low: float, other_high: float) -> bool:
    """Whether two ranges share a value, so that neither lies clearly above the other."""
    return low <= other_high and other_low <= high


def communication_resolution(timing: pd.DataFrame) -> pd.DataFrame:
    """The smallest communication time, in seconds, that a subtraction can tell from none.

    Columns recipe, strategy, gpus, batch_size, estimate, resolution_seconds, one row per multi-GPU
    cell of `timing` and estimate by subtraction. The difference T(N,b) - T(1,b)/N is uncertain by
    the ranges (maximum - minimum) of both of its terms together; the figure is their sum. NaN where
    a time was measured only once, or has no range.
    """
    table = with_single_gpu(timing[timing["gpus"] > 1], timing, "batch_size")
    repeated = (table["count"] > 1) & (table["single_count"] > 1)
    found = []
    for estimate, seconds in SUBTRACTIONS.items():
        own = table[f"{seconds}_max"] - table[f"{seconds}_min"]
        single = table[f"single_{seconds}_max"] - table[f"single_{seconds}_min"]
        resolution = (own + single / table["gpus"]).where(repeated)
        found.append(
            table[CELL_KEYS].assign(estimate=estimate, resolution_seconds=resolution.astype(float))
        )
    return pd.concat(found, ignore_index=True)


def with_resolution(communication: pd.DataFrame, timing: pd.DataFrame) -> pd.DataFrame:
    """`communication` with `resolution_seconds` and whether its communication is `within_noise`.

    That of an instrument which read several times is the range of its readings, `spread_seconds`
    where `communication` has it; that of one which read once is unknown: NaN, never `within_noise`.
    """
    keys = [*CELL_KEYS, "estimate"]
    table = communication.merge(communication_resolution(timing), how="left", on=keys)
    if "spread_seconds" in table:
        table["resolution_seconds"] = table["resolution_seconds"].fillna(table["spread_seconds"])
    small = table["communication_seconds"].abs() <= table["resolution_seconds"]
    return table.assign(within_noise=small)
