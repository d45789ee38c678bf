"""Question 4 of the report: remedies for large batches, and what speedup they leave."""

import math
from typing import Any

import pandas as pd

from scaling.core import numbers as fmt
from scaling.report.table import Table, TableCell, head, status, text
from scaling.tables.experiments.best_remedy import base_rate, best
from scaling.tables.experiments.gap import BEHIND, SAME
from scaling.tables.schema import StudyTables, by_configuration

QUANTITIES = [
    ("train_loss", 1),
    ("train_accuracy", 100),
    ("test_loss", 1),
    ("test_accuracy", 100),
]
HEADINGS = ["training loss", "training accuracy, %", "test loss", "test accuracy, %"]


def remedies(tables: StudyTables) -> dict[str, Any]:
    """A table of the base rate, one of remedies for each global batch, one of times."""
    found, times = tables.experiment("remedies"), tables.experiment("time_to_accuracy")
    batches = sorted(int(batch) for batch in found["global_batch"].unique())
    names = list(dict.fromkeys(base_rate(tables.experiment("convergence"))["remedy"]))
    return {
        "base": [_base(found[found["remedy"] == name]) for name in names],
        "tables": [
            _at(batch, found[found["global_batch"] == batch], best(found, batch))
            for batch in batches
        ],
        "margin": f"{100 * found['accuracy_margin'].max():g}",
        "times": _times(times),
        "target": _target(times),
    }


def _base(rows: pd.DataFrame) -> Table:
    return Table(
        title="The base rate, whatever the batch",
        columns=[
            *("global batch", "GPUs × batch size", "updates"),
            *(*HEADINGS, "test accuracy minus reference, points"),
        ],
        rows=[
            [
                head(str(row.global_batch)),
                text(_split(row)),
                _updates(row),
                *_figures(row),
                _difference(row),
            ]
            for row in rows.sort_values("global_batch").itertuples()
        ],
        text_columns=frozenset({"GPUs × batch size"}),
    )


def _at(batch: int, rows: pd.DataFrame, chosen: Any | None) -> Table:
    first = next(rows.itertuples())
    highest = chosen.remedy if chosen else None
    return Table(
        title=f"Global batch {batch}" + (f": {_split(first)}" if first.status == "ok" else ""),
        columns=[
            *("remedy", "learning rate", "updates"),
            *(*HEADINGS, "test accuracy minus reference, points"),
        ],
        rows=[
            [
                TableCell(
                    row.remedy,
                    detail=row.options.replace("_", " "),
                    flags=("best in training",) if row.remedy == highest else (),
                    kind="head",
                ),
                _rate(row),
                _updates(row),
                *_results(row),
            ]
            for row in rows.itertuples()
        ],
        notes=sorted({row.message for row in rows.itertuples() if row.message}),
    )


def _results(row: Any) -> list[TableCell]:
    """The figures and their distance to the reference, once for remedies that share their runs."""
    if not row.same_runs_as:
        return [*_figures(row), _difference(row)]
    whose = f"the runs of “{row.same_runs_as}”"
    if row.reference:
        return [TableCell(whose, kind="text", columns=len(QUANTITIES)), _difference(row)]
    return [TableCell(whose, kind="text", columns=len(QUANTITIES) + 1)]


def _split(row: Any) -> str:
    return status_of(row) or f"{int(row.gpus)} × {int(row.batch_size)}"


def status_of(row: Any) -> str:
    """The status of a remedy that has no runs, else nothing."""
    return "" if row.status == "ok" else str(row.status)


def _rate(row: Any) -> TableCell:
    if status_of(row):
        return status(status_of(row))
    flags = ("edge of the sweep",) if row.at_edge else ()
    rates = f"\nbest of {int(row.rates)}" if row.rates > 1 else ""
    detail = f"{row.factor:g} × rule’s{rates}"
    return TableCell(fmt.significant(row.learning_rate), detail=detail, flags=flags)


def _updates(row: Any) -> TableCell:
    if status_of(row):
        return status("none")
    flags = (f"{int(row.diverged_seeds)} diverged",) if row.diverged_seeds else ()
    detail = f"{fmt.plural(int(row.epochs), 'epoch')}\n{fmt.plural(int(row.seeds), 'seed')}"
    return TableCell(f"{int(row.updates):,}", detail=detail, flags=flags)


def _figures(row: Any) -> list[TableCell]:
    if status_of(row):
        return [status("none", len(QUANTITIES))]
    line = []
    for quantity, factor in QUANTITIES:
        mean, low, high = (factor * getattr(row, quantity + end) for end in ("", "_min", "_max"))
        if pd.isna(mean):
            line.append(status("not finite"))
        else:
            spread = fmt.span(low, high) if row.seeds > 1 else ""
            line.append(TableCell(fmt.significant(mean), detail=spread))
    return line


def _difference(row: Any) -> TableCell:
    if row.reference:
        return TableCell("reference")
    if row.test_verdict == SAME:
        return TableCell("the reference’s runs")
    if pd.isna(row.test_difference):
        return status("none")
    interval = ""
    if pd.notna(row.test_low):
        interval = f"{fmt.points(100 * row.test_low)} to {fmt.points(100 * row.test_high)}"
    flags = (row.test_verdict,) if row.test_verdict != BEHIND else ()
    return TableCell(fmt.points(100 * row.test_difference), detail=interval, flags=flags)


def _target(table: pd.DataFrame) -> str:
    return fmt.percent(table["target_accuracy"].iloc[0]) if len(table) else ""


def _times(table: pd.DataFrame) -> list[Table]:
    """For each recipe and strategy the cells with such a global batch and the remedy chosen."""
    timed = table[table["seconds"].notna()]
    return [
        Table(
            title=f"{recipe}, {strategy}",
            columns=[
                *("global batch", "GPUs × batch size", "remedy", "seeds that reach it"),
                *("epochs needed", "one epoch, s", "time, s"),
                *("speedup of an epoch", "speedup that is left", "against plain SGD"),
            ],
            rows=[_time(rows) for _, rows in cells.groupby(["global_batch", "gpus"])],
            text_columns=frozenset({"GPUs × batch size", "remedy"}),
        )
        for recipe, strategy, cells in by_configuration(timed)
    ]


def _time(rows: pd.DataFrame) -> list[TableCell]:
    """The line of a cell: the remedy that training accuracy chose, none where all diverged."""
    none = rows.head(1).assign(remedy="none", seconds=math.inf, reached=0)
    best = rows[rows["best"].eq(True)]
    row: Any = next((best if len(best) else none).itertuples())
    reached = math.isfinite(row.seconds)
    most = row.epochs_to_accuracy_max
    never = "" if math.isfinite(most) else " to never"
    spread = f"{row.epochs_to_accuracy_min:g}{never or f'–{most:g}'}"
    return [
        head(str(int(row.global_batch))),
        _place(row),
        text(row.remedy),
        TableCell(f"{int(row.reached)} of {int(row.seeds)}"),
        TableCell(f"{row.epochs_to_accuracy:g}", detail=spread) if reached else status("never"),
        TableCell(fmt.significant(row.epoch_seconds)),
        TableCell(fmt.significant(row.seconds)) if reached else status("infinite"),
        TableCell(fmt.times(row.epoch_speedup)),
        *(
            TableCell(fmt.times(ratio)) if reached else status("none")
            for ratio in (row.speedup, row.plain_speedup)
        ),
    ]


def _place(row: Any) -> TableCell:
    flags = () if row.same_split else ("other split",)
    return TableCell(f"{int(row.gpus)} × {int(row.batch_size)}", flags=flags, kind="text")
