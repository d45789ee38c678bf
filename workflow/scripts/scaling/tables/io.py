"""What every table shares: keys, row order, the single-GPU rows, and how it is read and written."""

from pathlib import Path

import pandas as pd

from scaling.core import files
from scaling.core.errors import UserError
from scaling.core.grid import CELL_KEYS

KEYS = [*CELL_KEYS, "status"]
GB = 1e9
"""Bytes of one GB: the decimal unit, as in nccl-tests."""

_ORDER = [*CELL_KEYS, "seed", "epoch"]
_BASELINE_KEYS = ["recipe", "strategy", "batch_size"]
_INTEGERS = [
    *("gpus", "batch_size", "seed", "epoch", "count", "iterations", "samples"),
    *("bytes_per_iteration", "bytes_per_epoch", "message_bytes", "points"),
    *("global_batch", "epochs", "updates", "updates_per_epoch", "update", "diverged_update"),
    *("reference_updates", "seeds", "diverged_seeds", "reached"),
    *("rank", "step", "position", "bytes", "overlap", "epochs", "cpu_count", "cpu_threads"),
]


def arrange(table: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    """`table` with exactly `columns`, its rows by recipe, strategy, gpus, batch_size (seed, epoch).

    Rows that agree in all of these keep their order.
    """
    order = [key for key in _ORDER if key in columns]
    return table.sort_values(order, kind="stable", ignore_index=True)[columns]


def write(table: pd.DataFrame, path: Path) -> None:
    """Write `table` as CSV: floats with every digit, whole numbers as such, no value as empty."""
    # A gap turns a column of whole numbers into floats; Int64 has room for both.
    whole = {column: "Int64" for column in _INTEGERS if column in table}
    files.write_text(path, table.astype(whole).to_csv(index=False, lineterminator="\n"))


WORDS = [
    *("recipe", "strategy", "note", "message"),
    *("python", "torch", "cuda", "nccl", "driver", "commit", "slurm_job_id"),
    *("cpu_count", "cpu_threads"),
    *("order_sha256", "parameters_sha256", "buffers_sha256", "compiled_batch_sizes"),
]
"""Columns that are text even when empty or when they look like numbers: 12.10 is not 12.1.

What is only ever shown is among them: beside a gap, 64 cores would be read as 64.0.
"""


def read(path: Path, columns: list[str]) -> pd.DataFrame:
    """The table at `path`, which must have `columns`; an empty field is NaN.

    Raises UserError when there is no such file, it is not a CSV table, or a column is missing.
    """
    try:
        table = pd.read_csv(
            path,
            dtype=dict.fromkeys(WORDS, str),
            keep_default_na=False,
            na_values=[""],
        )
    except FileNotFoundError as error:
        raise UserError(f"{path} does not exist") from error
    except ValueError as error:
        raise UserError(f"{path} is not a CSV table ({error}); make it again") from error
    absent = [column for column in columns if column not in table]
    if absent:
        raise UserError(f"{path} has no column {', '.join(absent)}; make it again or add it")
    return table


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
