"""The single-GPU baseline of every row."""

import pandas as pd

from scaling.core.errors import UserError

_BASELINE_KEYS = ["recipe", "strategy", "batch_size"]


def with_single_gpu(table: pd.DataFrame, timing: pd.DataFrame, batch_size: str) -> pd.DataFrame:
    """`table` beside its single-GPU baseline: every column of `timing` again, as `single_…`.

    The baseline of a row is the 1-GPU row of `timing` with the same recipe and strategy, and the
    batch size that the row has in its column `batch_size`; without one the columns are NaN.
    Raises UserError when `timing` has two rows for one such cell.
    """
    single = timing[timing["gpus"] == 1].add_prefix("single_")
    keys = [f"single_{key}" for key in _BASELINE_KEYS]
    twice = single[single.duplicated(keys)]
    if not twice.empty:
        recipe, strategy, size = twice.iloc[0][keys]
        raise UserError(
            f"the timing table has two rows for {recipe}/{strategy}, 1 GPU, batch {size}; keep one"
        )
    return table.merge(
        single, how="left", left_on=["recipe", "strategy", batch_size], right_on=keys
    )


def no_single_gpu_time(batch_size: int, status: str | float) -> str:
    """Why there is no T(1, batch_size): that cell's status (NaN: the grid has no such cell)."""
    reason = f"status {status}" if isinstance(status, str) else "not in the grid"
    return f"no single-GPU time for b={batch_size} ({reason})"
