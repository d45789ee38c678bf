"""Question 4 of the report: techniques for large batches, and what speedup they leave."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pandas as pd

from scaling.core import numbers as fmt
from scaling.report.table import Column, Table, TableCell, make_table, spread_of, status, text
from scaling.tables.experiments.best_remedy import base_rate, best
from scaling.tables.experiments.gap import BEHIND, SAME
from scaling.tables.schema import StudyTables, by_configuration

QUANTITIES = {
    "train_loss": ("training loss", 1, 3),
    "train_accuracy": ("training accuracy, %", 100, 2),
    "test_loss": ("test loss", 1, 3),
    "test_accuracy": ("test accuracy, %", 100, 2),
}
"""The name of each quantity, the factor and the decimals it is shown with."""


def techniques(tables: StudyTables) -> dict[str, Any]:
    """A table of the base rate, one of techniques for each global batch, one of times."""
    found, times = tables.experiment("remedies"), tables.experiment("time_to_accuracy")
    batches = sorted(int(batch) for batch in found["global_batch"].unique())
    names = list(dict.fromkeys(base_rate(tables.experiment("convergence"))["remedy"]))
    return {
        "base": [
            make_table(
                "The base rate, whatever the batch",
                found[found["remedy"] == name].sort_values("global_batch"),
                BASE_RATE,
            )
            for name in names
        ],
        "tables": [
            _at(batch, found[found["global_batch"] == batch], best(found, batch))
            for batch in batches
        ],
        "margin": f"{100 * found['accuracy_margin'].max():g}",
        "times": [
            make_table(
                f"{recipe}, {strategy}",
                pd.concat([_chosen(rows) for _, rows in cells.groupby(["global_batch", "gpus"])]),
                TIMES,
            )
            for recipe, strategy, cells in by_configuration(times[times["seconds"].notna()])
        ],
        "target": fmt.percent(times["target_accuracy"].iloc[0]) if len(times) else "",
    }


def _at(batch: int, rows: pd.DataFrame, chosen: Any | None) -> Table:
    first = next(rows.itertuples())
    split = f": {int(first.gpus)} × {int(first.batch_size)}" if first.status == "ok" else ""
    remedy = Column(
        "remedy",
        "remedy",
        kind="head",
        detail=lambda row: row.options.replace("_", " "),
        flags=lambda row: ("best in training",) if chosen and row.remedy == chosen.remedy else (),
    )
    notes = sorted({row.message for row in rows.itertuples() if row.message})
    return make_table(f"Global batch {batch}{split}", rows, [remedy, *AT_A_BATCH], notes=notes)


GPUS_AND_BATCH = Column(
    "GPUs × batch size", lambda row: f"{int(row.gpus)} × {int(row.batch_size)}", kind="text"
)


def is_reference(row: Any) -> TableCell | None:
    """Make the cell that stands for the reference's distance to itself."""
    return TableCell("reference") if row.reference else None


def mean_and_range(
    label: str,
    quantity: str,
    missing: str,
    instead: Callable[[Any], TableCell | None],
    group: str = "",
) -> Column:
    """Make the column of a quantity's mean, with its range over the seeds where there are several.

    The range is in the columns `…_min` and `…_max`.
    """
    factor = QUANTITIES[quantity][1]
    spread = spread_of(quantity, factor)
    return Column(
        label,
        lambda row: factor * getattr(row, quantity),
        fmt.significant,
        detail=lambda row: spread(row) if row.seeds > 1 else "",
        missing=missing,
        instead=instead,
        group=group,
    )


def _not_run(row: Any) -> TableCell | None:
    """The status of a technique that has no runs."""
    return None if row.status == "ok" else status(row.status)


def _no_figures(row: Any) -> TableCell | None:
    return _not_run(row) and status("none")


def _runs_of_another(row: Any) -> TableCell | None:
    """One cell for all figures of a technique whose runs are another's."""
    return TableCell(f"the runs of “{row.same_runs_as}”", kind="text") if row.same_runs_as else None


def _test_interval(row: Any) -> str:
    low, high = 100 * row.test_low, 100 * row.test_high
    return "" if pd.isna(low) else f"{fmt.points(low)} to {fmt.points(high)}"


def _rate_detail(row: Any) -> str:
    rates = f"\nbest of {int(row.rates)}" if row.rates > 1 else ""
    return f"{row.factor:g} × rule’s{rates}"


def _results(shared: Callable[[Any], TableCell | None]) -> list[Column]:
    """The figures after the last epoch and their distance to the reference, or what is `shared`."""
    return [
        *(
            mean_and_range(
                label, quantity, "not finite", lambda row: shared(row) or _no_figures(row)
            )
            for quantity, (label, _, _) in QUANTITIES.items()
        ),
        Column(
            "test accuracy minus reference, points",
            lambda row: 100 * row.test_difference,
            fmt.points,
            detail=_test_interval,
            flags=lambda row: (row.test_verdict,) if row.test_verdict != BEHIND else (),
            missing="none",
            instead=lambda row: (
                is_reference(row)
                or shared(row)
                or (TableCell("the reference’s runs") if row.test_verdict == SAME else None)
            ),
        ),
    ]


UPDATES = Column(
    "updates",
    lambda row: row.updates if row.status == "ok" else None,
    lambda count: f"{int(count):,}",
    detail=lambda row: (
        f"{fmt.plural(int(row.epochs), 'epoch')}\n{fmt.plural(int(row.seeds), 'seed')}"
    ),
    flags=lambda row: (f"{int(row.diverged_seeds)} diverged",) if row.diverged_seeds else (),
    missing="none",
)
BASE_RATE = [
    Column("global batch", "global_batch", fmt.integer, "head"),
    replace(GPUS_AND_BATCH, instead=lambda row: _not_run(row) and text(row.status)),
    UPDATES,
    *_results(lambda row: None),
]
AT_A_BATCH = [
    Column(
        "learning rate",
        "learning_rate",
        fmt.significant,
        detail=_rate_detail,
        flags=lambda row: ("edge of the sweep",) if row.at_edge else (),
        instead=_not_run,
    ),
    UPDATES,
    *_results(_runs_of_another),
]


def _chosen(rows: pd.DataFrame) -> pd.DataFrame:
    """The row of a cell: the technique that training accuracy chose, none where all diverged."""
    none = rows.head(1).assign(remedy="none", seconds=math.inf, reached=0)
    best = rows[rows["best"].eq(True)].head(1)
    return best if len(best) else none


def _if_reached(label: str, name: str, write: Callable[[Any], str], never: str) -> Column:
    """A figure that is infinite, and so the word `never`, where the accuracy is not reached."""
    return Column(
        label,
        lambda row: getattr(row, name) if math.isfinite(row.seconds) else None,
        write,
        missing=never,
    )


def _epochs_range(row: Any) -> str:
    most = row.epochs_to_accuracy_max
    end = f"–{most:g}" if math.isfinite(most) else " to never"
    return f"{row.epochs_to_accuracy_min:g}{end}"


TIMES = [
    Column("global batch", "global_batch", fmt.integer, "head"),
    replace(GPUS_AND_BATCH, flags=lambda row: () if row.same_split else ("other split",)),
    Column("remedy", "remedy", kind="text"),
    Column("seeds that reach it", lambda row: f"{int(row.reached)} of {int(row.seeds)}"),
    replace(
        _if_reached("epochs needed", "epochs_to_accuracy", lambda count: f"{count:g}", "never"),
        detail=_epochs_range,
    ),
    Column("one epoch, s", "epoch_seconds", fmt.significant),
    _if_reached("time, s", "seconds", fmt.significant, "infinite"),
    Column("speedup of an epoch", "epoch_speedup", fmt.times),
    _if_reached("speedup that is left", "speedup", fmt.times, "none"),
    _if_reached("against plain SGD", "plain_speedup", fmt.times, "none"),
]
