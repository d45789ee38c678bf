"""Question 3 of the report: compute and communication, bytes, bandwidth, the interconnect."""

from typing import Any

import pandas as pd

from scaling.core import numbers as fmt
from scaling.core.grid import CELL_KEYS
from scaling.report.sections import interconnect
from scaling.report.table import (
    Table,
    TableCell,
    collect_notes,
    flags_of,
    head,
    no_single,
    status,
    text,
)
from scaling.tables import noise
from scaling.tables.communication import SUBTRACTIONS, with_values
from scaling.tables.derived import DerivedTables
from scaling.tables.schema import StudyTables, by_configuration

CELL = ["batch_size", "gpus"]
CELL_COLUMNS = ["batch size per GPU", "GPUs"]
RATE_COLUMNS = [
    *("bytes per iteration", "iterations", "bytes per epoch", "estimate"),
    *("communication, s", "GB/s", "peak measured, GB/s", "utilization"),
]
ESTIMATES = {
    "subtraction": "compute is T(1, b) / N, communication what is left of T(N, b): whatever does "
    "not shrink with N, waiting for data included",
    "subtraction_without_loading": "the same, with the wait for data left out of both times",
    "without_communication": "iterations with gradient synchronisation minus the same ones without "
    "it: what communication adds",
    "profiler": "time of the communication operations in a trace; exposed is the part during which "
    "no computation runs, overlapped the rest",
    "ddp_log": "what DistributedDataParallel logs of its own all-reduces, and how much of that the "
    "backward pass overlaps",
}
"""What each estimate of the communication measures."""


def compute_and_communication(tables: DerivedTables) -> dict[str, Any]:
    """Table 2: a row for each batch size and estimate, a group of columns for each GPU count."""
    shares = noise.with_resolution(tables.communication, tables.timing)
    occurring = set(with_values(shares)["estimate"])
    return {
        "estimates": [
            (fmt.estimate(name), words) for name, words in ESTIMATES.items() if name in occurring
        ],
        "instruments": bool(occurring - set(SUBTRACTIONS)),
        "tables": [
            _table_2(f"Table 2: {recipe}, {strategy}", rows)
            for recipe, strategy, rows in by_configuration(shares)
        ],
    }


def bandwidth(tables: StudyTables) -> dict[str, Any]:
    """Table 3, and the sweep over the interconnect with the line fitted through it."""
    return {
        "tables": bandwidths(tables),
        "sweeps": interconnect.sweeps(tables.interconnect),
        "fits": interconnect.fits(tables.interconnect_fit),
    }


def bandwidths(tables: DerivedTables) -> list[Table]:
    """Table 3 of each recipe and strategy: bytes, seconds and bandwidth of every multi-GPU cell."""
    shares = tables.communication[[*CELL_KEYS, "estimate", "total_seconds", "spread_seconds"]]
    rates = noise.with_resolution(tables.bandwidth.merge(shares, how="left"), tables.timing)
    return [
        _table_3(f"Table 3: {recipe}, {strategy}", rows)
        for recipe, strategy, rows in by_configuration(rates)
    ]


def _table_2(title: str, rows: pd.DataFrame) -> Table:
    counts = sorted(int(count) for count in rows["gpus"].unique())
    cells = {(row.batch_size, row.gpus, row.estimate): row for row in rows.itertuples()}
    names = list(with_values(rows)["estimate"].unique())
    lines = []
    for batch in sorted(int(size) for size in rows["batch_size"].unique()):
        for name in names:
            line = [head(str(batch), rows=len(names))] if name == names[0] else []
            line.append(text(fmt.estimate(name)))
            for count in counts:
                found = cells.get((batch, count, name))
                line += _parts(found) if found else [status("not in the grid", 3)]
            lines.append(line)
    return Table(
        title=title,
        groups=[("", 2), *((fmt.gpus(count), 3) for count in counts)],
        columns=["batch size per GPU", "estimate"]
        + ["compute, s", "communication, s", "share of total"] * len(counts),
        rows=lines,
        notes=collect_notes(_saying_what_lacks(rows[rows["total_seconds"].notna()], names), "note"),
        text_columns=frozenset({"estimate"}),
    )


def _saying_what_lacks(rows: pd.DataFrame, shown: list[str]) -> pd.DataFrame:
    """`rows` whose notes name their estimate where it has no line in the table."""
    named = "no “" + rows["estimate"].map(fmt.estimate) + "”: " + rows["note"]
    return rows.assign(note=rows["note"].where(rows["estimate"].isin(shown), named))


def _parts(row: Any) -> list[TableCell]:
    if pd.isna(row.communication_seconds):
        return [_no_communication(row, 3)]
    parts = ""
    if pd.notna(row.overlapped_seconds):
        exposed, overlapped = map(fmt.significant, (row.exposed_seconds, row.overlapped_seconds))
        parts = f"exposed {exposed},\noverlapped {overlapped}"
    communication = TableCell(
        fmt.significant(row.communication_seconds),
        detail=parts,
        flags=flags_of(row, negative=row.communication_seconds < 0, within_noise=row.within_noise),
    )
    share = fmt.percent(row.communication_seconds / row.total_seconds)
    return [TableCell(fmt.significant(row.compute_seconds)), communication, TableCell(share)]


def _no_communication(row: Any, columns: int) -> TableCell:
    """What stands where a cell has no communication time; the notes below the table say more."""
    if pd.isna(row.total_seconds):
        return status("loading unknown" if row.status == "ok" else row.status, columns)
    if row.estimate in SUBTRACTIONS:
        return no_single(row.batch_size, columns)
    return status("no reading", columns)


def _table_3(title: str, rows: pd.DataFrame) -> Table:
    lines = []
    for (batch, count), cell in with_values(rows).groupby(CELL):
        if cell["total_seconds"].isna().all() and cell["status"].iloc[0] != "ok":
            untimed = status(cell["status"].iloc[0], len(RATE_COLUMNS))
            lines.append([head(str(batch)), TableCell(str(int(count))), untimed])
            continue
        for index, row in enumerate(cell.itertuples()):
            line = []
            if index == 0:
                line = [
                    head(str(batch), rows=len(cell)),
                    TableCell(str(int(count)), rows=len(cell)),
                    TableCell(fmt.data(row.bytes_per_iteration), rows=len(cell)),
                    *_per_epoch(row, len(cell)),
                ]
            lines.append([*line, text(fmt.estimate(row.estimate)), *_rate(row)])
    return Table(
        title=title,
        columns=[*CELL_COLUMNS, *RATE_COLUMNS],
        rows=lines,
        notes=collect_notes(rows[rows["communication_seconds"].notna()], "note"),
        text_columns=frozenset({"estimate"}),
    )


def _per_epoch(row: Any, extent: int) -> list[TableCell]:
    if pd.isna(row.iterations):
        return [TableCell("–", rows=extent), TableCell("–", rows=extent)]
    return [
        TableCell(f"{int(row.iterations):,}", rows=extent),
        TableCell(fmt.data(row.bytes_per_epoch), rows=extent),
    ]


def _rate(row: Any) -> list[TableCell]:
    peak = status("no sweep")
    if pd.notna(row.peak_gb_per_s):
        peak = TableCell(fmt.significant(row.peak_gb_per_s))
    if pd.isna(row.communication_seconds):
        return [_no_communication(row, 2), peak, status("none")]
    seconds = TableCell(
        fmt.significant(row.communication_seconds),
        flags=flags_of(row, within_noise=row.within_noise),
    )
    if pd.isna(row.bandwidth_gb_per_s):
        negative = "negative" if row.communication_seconds < 0 else "none"
        return [seconds, status(negative), peak, status("none")]
    if pd.isna(row.utilization):
        used = status("no peak")
    else:
        above = ("above 100 %",) if row.utilization > 1 else ()
        used = TableCell(fmt.percent(row.utilization), flags=above)
    return [seconds, TableCell(fmt.significant(row.bandwidth_gb_per_s)), peak, used]
