"""Seconds of every cell, from its run records: of an epoch, and of all that a run costs besides."""

import math
from dataclasses import dataclass
from operator import itemgetter
from statistics import fmean, median, stdev
from typing import Any

import pandas as pd

from scaling.core.records.kind import Role
from scaling.core.records.run import PHASES, RunRecord
from scaling.tables.runs import Run, Seeds, ranks_by_epoch, table_of_cells, worst_status

TIMED = ("ok", "diverged")
"""Statuses whose measured epochs count: a loss that became NaN takes as long as any other."""


@dataclass(frozen=True)
class Epoch:
    """One epoch over all ranks: the slowest rank's seconds, the longest wait for data.

    `power_capped_seconds` are those of the GPU that was held back longest; None where not counted.
    """

    seconds: float
    loader_seconds: float
    iterations: int
    samples: int
    power_capped_seconds: float | None = None


def epochs(record: RunRecord, role: Role = "measured") -> list[Epoch]:
    """The epochs of a run in a role, in order.

    `loader_seconds` is that of the rank that waited longest, because the others wait for it in
    the all-reduce: such a stall is loading, not communication. Samples are summed over ranks.
    """
    return [
        Epoch(
            seconds=max(rank["seconds"] for rank in ranks),
            loader_seconds=max(rank["loader_seconds"] for rank in ranks),
            iterations=ranks[0]["iterations"],
            samples=sum(rank["samples"] for rank in ranks),
            power_capped_seconds=max(
                (held for rank in ranks if (held := rank["power_capped_seconds"]) is not None),
                default=None,
            ),
        )
        for ranks in ranks_by_epoch(record, role)
    ]


def _middle(ordered: list[Any]) -> list[Any]:
    """The middle one, or the two of an even number; nothing of nothing."""
    return ordered[(len(ordered) - 1) // 2 : len(ordered) // 2 + 1] if ordered else []


def timing(runs: list[Run]) -> pd.DataFrame:
    """The table of seconds per epoch: one row per cell, the epochs of its runs pooled.

    The status is `worst_status`. A cell without a timed epoch keeps its row, with empty figures.
    """
    return table_of_cells("timing", runs, _figures)


def _figures(seeds: Seeds) -> dict[str, Any]:
    """The median epoch, with minimum, maximum and count; no figures when there is no epoch.

    Every figure is of the same epoch (of the mean of the two middle ones for an even count), so
    that epoch_seconds = epoch_seconds_without_loading + loader_seconds. Minimum and maximum are
    over all epochs, with and without loading each for itself; `…_run_min` and `…_run_max` over the
    medians of the `runs`, and `…_run_std` their sample standard deviation.
    """
    records = [record for record in seeds if record is not None]
    messages = [record["message"] for record in records if record["message"]]
    if len(records) < len(seeds):
        messages.append(f"{len(seeds) - len(records)} of {len(seeds)} runs have no record")
    row = {"status": worst_status(seeds), "message": "; ".join(dict.fromkeys(messages))}
    runs = [own for record in records if record["status"] in TIMED and (own := epochs(record))]
    timed = [epoch for own in runs for epoch in own]
    if not timed:
        return row
    ordered = sorted(timed, key=lambda epoch: (epoch.seconds, epoch.loader_seconds))
    middle = _middle(ordered)
    seconds = fmean(epoch.seconds for epoch in middle)
    loader_seconds = fmean(epoch.loader_seconds for epoch in middle)
    return row | {
        "epoch_seconds": seconds,
        "epoch_seconds_without_loading": seconds - loader_seconds,
        "loader_seconds": loader_seconds,
        **spread("epoch_seconds", [[epoch.seconds for epoch in own] for own in runs]),
        **spread(
            "epoch_seconds_without_loading",
            [[epoch.seconds - epoch.loader_seconds for epoch in own] for own in runs],
        ),
        "count": len(ordered),
        "runs": len(runs),
        "iterations": middle[0].iterations,
        "samples": middle[0].samples,
    }


def spread(name: str, runs: list[list[float]]) -> dict[str, float]:
    """The ends of a time over all epochs, and those of the medians of its runs."""
    medians = [median(seconds) for seconds in runs]
    return {
        f"{name}_min": min(map(min, runs)),
        f"{name}_max": max(map(max, runs)),
        f"{name}_run_min": min(medians),
        f"{name}_run_max": max(medians),
        f"{name}_run_std": stdev(medians) if len(medians) > 1 else math.nan,
    }


def startup(runs: list[Run]) -> pd.DataFrame:
    """The fixed cost of each cell: one row per cell, in seconds.

    The phases (`PHASES`) add up to startup_seconds, and startup, warm-up, measured, other and
    shutdown to run_seconds: from the start of the run's command to the end of its last process. The
    warm-up epochs are a part of their own, because what is compiled at first use is in them;
    other_seconds are evaluation, instruments and whatever lies between the parts. unmeasured_share
    = 1 - measured_seconds / run_seconds.

    The figures are of the seed with the median run_seconds (the mean of the two middle ones for
    an even count), out of `count` seeds; NaN where no seed ran to its end or the records were made
    before this was measured.
    """
    return table_of_cells("startup", runs, _fixed_cost)


def _fixed_cost(seeds: Seeds) -> dict[str, Any]:
    whole = [parts for record in seeds if record and (parts := _parts(record))]
    middle = _middle(sorted(whole, key=itemgetter("run_seconds")))
    means = {key: fmean(row[key] for row in middle) for row in middle[:1] for key in row}
    return {"status": worst_status(seeds), **means, "count": len(whole)}


def _parts(record: RunRecord) -> dict[str, float] | None:
    """The row of one run, None for one that did not run to its end or did not measure it."""
    phases, run, shutdown = record["startup"], record["run_seconds"], record["shutdown_seconds"]
    if record["status"] not in TIMED or phases is None or run is None or shutdown is None:
        return None
    warmup, measured = (
        sum(epoch.seconds for epoch in epochs(record, role)) for role in ("warmup", "measured")
    )
    return {
        **{f"{phase}_seconds": phases[phase] for phase in PHASES},
        "startup_seconds": phases["total"],
        "warmup_seconds": warmup,
        "measured_seconds": measured,
        "other_seconds": run - (phases["total"] + warmup + measured + shutdown),
        "shutdown_seconds": shutdown,
        "run_seconds": run,
        "unmeasured_share": 1 - measured / run,
    }


def with_single_gpu(table: pd.DataFrame, timing: pd.DataFrame, batch_size: str) -> pd.DataFrame:
    """`table` beside its single-GPU baseline: every column of `timing` again, as `single_…`.

    The baseline of a row is the 1-GPU row of `timing` with the same recipe and strategy, and the
    batch size that the row has in its column `batch_size`; without one the columns are NaN.
    """
    single = timing[timing["gpus"] == 1].add_prefix("single_")
    own = ["recipe", "strategy", batch_size]
    other = ["single_recipe", "single_strategy", "single_batch_size"]
    return table.merge(single, how="left", left_on=own, right_on=other, validate="many_to_one")


def no_single_gpu_time(batch_size: int, status: str | float) -> str:
    """Why there is no T(1, batch_size): that cell's status (NaN: the grid has no such cell)."""
    reason = f"status {status}" if isinstance(status, str) else "not in the grid"
    return f"no single-GPU time for b={batch_size} ({reason})"
