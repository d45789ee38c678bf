"""Which differences of times are larger than the spread of the times themselves."""

import pandas as pd

from scaling.tables import with_single_gpu


def ranges_overlap(low: float, high: float, other_low: float, other_high: float) -> bool:
    """Whether two ranges share a value, so that neither lies clearly above the other."""
    return low <= other_high and other_low <= high


def communication_resolution(timing: pd.DataFrame) -> pd.DataFrame:
    """The smallest communication time, in seconds, that subtraction can tell from none.

    Columns recipe, strategy, gpus, batch_size, resolution_seconds, one row per multi-GPU cell of
    `timing`. The difference T(N,b) - T(1,b)/N is uncertain by the ranges (maximum - minimum) of
    both of its terms together; the figure is their sum. NaN where a time was measured only once.
    """
    table = with_single_gpu(timing[timing["gpus"] > 1], timing, "batch_size")
    own = table["epoch_seconds_max"] - table["epoch_seconds_min"]
    single = table["single_epoch_seconds_max"] - table["single_epoch_seconds_min"]
    repeated = (table["count"] > 1) & (table["single_count"] > 1)
    table["resolution_seconds"] = (own + single / table["gpus"]).where(repeated)
    return table[["recipe", "strategy", "gpus", "batch_size", "resolution_seconds"]]


def with_resolution(communication: pd.DataFrame, timing: pd.DataFrame) -> pd.DataFrame:
    """`communication` with `resolution_seconds` and whether its communication is `within_noise`.

    Only an estimate by subtraction can be within this noise; for others it is False.
    """
    keys = ["recipe", "strategy", "gpus", "batch_size"]
    table = communication.merge(communication_resolution(timing), how="left", on=keys)
    subtracted = table["estimate"].str.startswith("subtraction")
    small = table["communication_seconds"].abs() <= table["resolution_seconds"]
    return table.assign(within_noise=subtracted & small)
