"""The report's section on physical limits: what the machine can do, and how much a cell uses."""

from functools import partial
from typing import Any

import pandas as pd

from scaling.core import numbers as fmt
from scaling.core.grid import CELL_KEYS
from scaling.report.sections import device_time
from scaling.report.table import (
    Table,
    TableCell,
    cell_lines,
    collect_notes,
    flags_of,
    head,
    status,
    text,
)
from scaling.tables import noise
from scaling.tables.schema import StudyTables, by_configuration

PREFIXES = {"T": 1e12, "G": 1e9, "M": 1e6}
QUANTITIES = {"matrix_product": "matrix product", "device_copy": "copy within one device"}


def rate(value: float, unit: str) -> str:
    """A rate with the prefix that suits it: `797 TFLOP/s`, `4.27 TB/s`."""
    prefix = next((name for name, size in PREFIXES.items() if value >= size), "M")
    return f"{fmt.significant(value / PREFIXES[prefix])} {prefix}{unit}"


def limits(tables: StudyTables) -> dict[str, Any]:
    """The peaks, copies between GPUs, topology; what each cell uses, its epoch's rest, its step."""
    measured = tables.peaks[tables.peaks["quantity"].isin(list(QUANTITIES))]
    pairs = tables.peaks[tables.peaks["quantity"] == "gpu_to_gpu_copy"]
    doubt = noise.with_resolution(tables.communication, tables.timing)
    doubt = doubt.rename(columns={"estimate": "communication_estimate"})
    keys = [*CELL_KEYS, "communication_estimate"]
    cells = tables.utilization.merge(doubt[[*keys, "within_noise"]], how="left", on=keys)
    return {
        "peaks": [_peaks(measured)] if len(measured) else [],
        "pairs": [_pairs(pairs)] if len(pairs) else [],
        "topology": tables.topology,
        "tables": [
            _cells(f"Utilization: {recipe}, {strategy}", rows)
            for recipe, strategy, rows in by_configuration(cells)
        ],
        "steps": device_time.steps(tables),
    }


def _peaks(rows: pd.DataFrame) -> Table:
    lines = []
    for (quantity, precision), group in rows.groupby(["quantity", "precision"], sort=False):
        best = group["value"].max()
        for index, row in enumerate(group.itertuples()):
            line = []
            if index == 0:
                name = f"{QUANTITIES[str(quantity)]} {precision}".strip()
                line.append(head(name, rows=len(group)))
            line += [
                text(_size(row)),
                TableCell(
                    rate(row.value, row.unit),
                    detail=f"{rate(row.value_min, row.unit)} to {rate(row.value_max, row.unit)}",
                ),
                TableCell(fmt.percent(row.value / best)),
                TableCell(f"{int(row.count)}"),
            ]
            lines.append(line)
    return Table(
        title="What the machine reaches",
        columns=["what", "size", "rate", "of the largest", "repeats"],
        rows=lines,
        text_columns=frozenset({"size"}),
    )


def _size(row: Any) -> str:
    if row.quantity == "matrix_product":
        return f"{int(row.matrix_size)} × {int(row.matrix_size)}"
    return fmt.data(row.copy_bytes)


def _pairs(rows: pd.DataFrame) -> Table:
    """A row for each GPU that is read, a column for each that is written."""
    found = {(row.source_gpu, row.target_gpu): row for row in rows.itertuples()}
    gpus = sorted({gpu for pair in found for gpu in pair})
    lines = []
    for source in gpus:
        line = [head(f"GPU {int(source)}")]
        for target in gpus:
            pair = found.get((source, target))
            if pair is None:
                line.append(TableCell("–"))
                continue
            line.append(
                TableCell(
                    fmt.significant(pair.value / 1e9),
                    detail=fmt.span(pair.value_min / 1e9, pair.value_max / 1e9),
                )
            )
        lines.append(line)
    return Table(
        title=f"Copies of {fmt.data(rows['copy_bytes'].max())} between GPUs, GB/s",
        columns=["from", *(f"to GPU {int(gpu)}" for gpu in gpus)],
        rows=lines,
    )


def _cells(title: str, rows: pd.DataFrame) -> Table:
    peaks = rows[rows["peak_flops_per_second"].notna()]
    counted = rows["power_capped_share"].notna().any()
    said = dict.fromkeys(
        f"{row.precision}, {rate(row.peak_flops_per_second, 'FLOP/s')}"
        for row in peaks.itertuples()
    )
    return Table(
        title=f"{title} (peak: {' or '.join(said) or 'not known'})",
        groups=[("", 4), ("of the epoch", 5 if counted else 4)],
        columns=[
            *("batch size per GPU", "GPUs", "images/s", "per GPU", "utilization"),
            *("waiting for data", "communication", "everything else"),
            *(["at the power limit"] if counted else []),
        ],
        rows=cell_lines(rows, partial(_cell, counted=bool(counted))),
        notes=collect_notes(rows[rows["images_per_second"].notna()], "note"),
    )


def _cell(row: Any, counted: bool) -> list[TableCell]:
    """The cells of a row; the last, where a driver `counted`, is the time at the power limit."""
    if pd.isna(row.images_per_second):
        return [status(row.status, 6 + counted)]
    share = row.power_capped_share
    capped = [TableCell("–" if pd.isna(share) else fmt.percent(share))] if counted else []
    images = TableCell(
        fmt.significant(row.images_per_second),
        detail=fmt.span(row.images_per_second_min, row.images_per_second_max),
        flags=flags_of(row, measured_once=row.count == 1),
    )
    if pd.isna(row.flops_per_second_per_gpu):
        return [images, status("operations not recorded", 5), *capped]
    per_gpu = TableCell(rate(row.flops_per_second_per_gpu, "FLOP/s"))
    if pd.isna(row.utilization):
        return [images, per_gpu, status("no peak", 4), *capped]
    used = TableCell(
        fmt.percent(row.utilization),
        detail=f"{fmt.percent(row.utilization_without_loading)} without loading",
        flags=("above 100 %",) if row.utilization > 1 else (),
    )
    loading = TableCell(fmt.percent(row.loading_share))
    other = TableCell(fmt.percent(row.other_share))
    return [images, per_gpu, used, loading, _communication(row), other, *capped]


def _communication(row: Any) -> TableCell:
    if row.gpus == 1:
        return TableCell("–")
    if pd.isna(row.communication_share):
        return status("no estimate")
    return TableCell(
        fmt.percent(row.communication_share),
        detail=f"by “{fmt.estimate(row.communication_estimate)}”",
        flags=flags_of(
            row, negative=row.communication_share < 0, within_noise=row.within_noise is True
        ),
    )
