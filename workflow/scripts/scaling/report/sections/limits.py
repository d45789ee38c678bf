"""The report's sections on physical limits, a step on the device, and the fixed cost of a run."""

from functools import partial
from typing import Any

import pandas as pd

from scaling.core import numbers as fmt
from scaling.core.grid import CELL_KEYS
from scaling.core.records import PHASES
from scaling.report.table import (
    Column,
    SectionPart,
    Table,
    TableCell,
    collect_notes,
    flags_of,
    make_table,
    spread_of,
    status,
    table_by_cell,
)
from scaling.tables import noise
from scaling.tables.schema import StudyTables, by_configuration
from scaling.tables.timing import PARTS, PHASE_COLUMNS, TIMED

QUANTITIES = {"matrix_product": "matrix product", "device_copy": "copy within one device"}
PHASE_MEANINGS = {
    "launch": "Python’s start, until the command’s own code begins; over several nodes also srun "
    "and torchrun",
    "imports": "PyTorch and the modules that need it",
    "join": "the device and, for several processes, their group: NCCL, or gloo on a CPU",
    "dataset": "the images, read and unpacked",
    "recipe": "the model and its trainer; where a step becomes a CUDA graph, it is compiled and "
    "recorded here",
}
PART_NAMES = {
    "startup_seconds": "start-up",
    "warmup_seconds": "warm-up",
    "measured_seconds": "measured",
    "other_seconds": "other",
    "shutdown_seconds": "end",
}
NOT_RECORDED = "not recorded"


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
        "steps": steps(tables),
    }


def _peaks(rows: pd.DataFrame) -> Table:
    kinds = rows.groupby(["quantity", "precision"], sort=False)
    rows = rows.assign(best=kinds["value"].transform("max"), order=kinds.ngroup())
    return make_table("What the machine reaches", rows.sort_values("order", kind="stable"), PEAKS)


def _size(row: Any) -> str:
    if row.quantity == "matrix_product":
        return f"{int(row.matrix_size)} × {int(row.matrix_size)}"
    return fmt.data(row.copy_bytes)


PEAKS = [
    Column(
        "what",
        lambda row: f"{QUANTITIES[row.quantity]} {row.precision}".strip(),
        kind="head",
        per=("quantity", "precision"),
    ),
    Column("size", _size, kind="text"),
    Column(
        "rate",
        lambda row: fmt.rate(row.value, row.unit),
        detail=lambda row: (
            f"{fmt.rate(row.value_min, row.unit)} to {fmt.rate(row.value_max, row.unit)}"
        ),
    ),
    Column("of the largest", lambda row: row.value / row.best, fmt.percent),
    Column("repeats", "count", fmt.integer),
]


def _pairs(rows: pd.DataFrame) -> Table:
    """A row for each GPU that is read, a column for each that is written."""
    found = {(int(row.source_gpu), int(row.target_gpu)): row for row in rows.itertuples()}
    gpus = sorted({gpu for pair in found for gpu in pair})

    def to(target: int) -> Column:
        def pair(row: Any) -> Any:
            return found.get((row.source, target))

        return Column(
            f"to GPU {target}",
            pair,
            lambda copy: fmt.significant(copy.value / 1e9),
            detail=lambda row: fmt.span(pair(row).value_min / 1e9, pair(row).value_max / 1e9),
        )

    return make_table(
        f"Copies of {fmt.data(rows['copy_bytes'].max())} between GPUs, GB/s",
        pd.DataFrame({"source": gpus}),
        [Column("from", "source", lambda gpu: f"GPU {gpu}", "head"), *map(to, gpus)],
    )


def _cells(title: str, rows: pd.DataFrame) -> Table:
    known = rows[rows["peak_flops_per_second"].notna()]
    peaks = dict.fromkeys(
        f"{row.precision}, {fmt.rate(row.peak_flops_per_second, 'FLOP/s')}"
        for row in known.itertuples()
    )
    counted = bool(rows["power_capped_share"].notna().any())
    return table_by_cell(
        f"{title} (peak: {' or '.join(peaks) or 'not known'})",
        rows,
        UTILIZATION + [AT_POWER_LIMIT] * counted,
        lambda row: status(row.status) if pd.isna(row.images_per_second) else None,
        collect_notes(rows[rows["images_per_second"].notna()], "note"),
    )


def _no_operations(row: Any) -> TableCell | None:
    known = pd.notna(row.flops_per_second_per_gpu)
    return None if known else status("operations not recorded")


def _no_utilization(row: Any) -> TableCell | None:
    if pd.isna(row.flops_per_second_per_gpu):
        return _no_operations(row)
    return status("no peak") if pd.isna(row.utilization) else None


share_of_epoch = partial(Column, write=fmt.percent, group="of the epoch")
UTILIZATION = [
    Column(
        "images/s",
        "images_per_second",
        fmt.significant,
        detail=spread_of("images_per_second"),
        flags=lambda row: flags_of(row, measured_once=row.count == 1),
    ),
    Column(
        "per GPU",
        "flops_per_second_per_gpu",
        lambda value: fmt.rate(value, "FLOP/s"),
        instead=_no_operations,
    ),
    share_of_epoch(
        "utilization",
        "utilization",
        detail=lambda row: f"{fmt.percent(row.utilization_without_loading)} without loading",
        flags=lambda row: ("above 100 %",) if row.utilization > 1 else (),
        instead=_no_utilization,
    ),
    share_of_epoch("waiting for data", "loading_share", instead=_no_utilization),
    share_of_epoch(
        "communication",
        "communication_share",
        detail=lambda row: f"by “{fmt.estimate(row.communication_estimate)}”",
        flags=lambda row: flags_of(
            row, negative=row.communication_share < 0, within_noise=row.within_noise is True
        ),
        missing=lambda row: "" if row.gpus == 1 else "no estimate",
        instead=_no_utilization,
    ),
    share_of_epoch("everything else", "other_share", instead=_no_utilization),
]
AT_POWER_LIMIT = share_of_epoch("at the power limit", "power_capped_share")
"""Shown where a driver counted it."""


def steps(tables: StudyTables) -> SectionPart:
    """A step on the device, for each recipe and strategy of which a cell was traced on a GPU."""
    found = tables.device_time
    traced = [same for same in by_configuration(found) if same[2]["count"].gt(0).any()]
    reasons = " and ".join(dict.fromkeys(note for note in found["note"] if note))
    return SectionPart(
        tables=[
            table_by_cell(
                f"A step on the device: {recipe}, {strategy}",
                rows,
                STEP,
                lambda row: status("not traced") if row.count == 0 else None,
                collect_notes(rows, "note"),
            )
            for recipe, strategy, rows in traced
        ],
        missing="" if traced else f"No step can be shown: {reasons or 'there are no cells'}.",
    )


def _together(row: Any) -> TableCell | None:
    """Both times as one, where a record does not tell waiting for others from compute."""
    known = pd.notna(row.compute_seconds)
    return None if known else TableCell(f"together {_milliseconds(row.busy_seconds)}")


def _gap_detail(row: Any) -> str:
    share = fmt.percent(row.gap_seconds / row.step_seconds)
    span = fmt.span(1e3 * row.gap_seconds_min, 1e3 * row.gap_seconds_max)
    return share if row.count == 1 else f"{span}, {share}"


def _milliseconds(seconds: float) -> str:
    return fmt.significant(1e3 * seconds)


STEP = [
    Column("step, ms", "step_seconds", _milliseconds, detail=lambda row: f"n = {int(row.count)}"),
    Column("compute, ms", "compute_seconds", _milliseconds, instead=_together),
    Column(
        "communication alone, ms",
        lambda row: row.busy_seconds - row.compute_seconds if row.gpus > 1 else None,
        _milliseconds,
        instead=_together,
    ),
    Column(
        "nothing, ms",
        "gap_seconds",
        _milliseconds,
        detail=_gap_detail,
        flags=lambda row: ("negative",) if row.gap_seconds < 0 else (),
    ),
    Column("kernels", "kernels", lambda count: f"{count:,.0f}"),
]


def fixed_cost(tables: StudyTables) -> dict[str, Any]:
    """The meaning of each phase, and a table of phases and parts for each configuration."""
    return {
        "phases": [(phase, PHASE_MEANINGS[phase]) for phase in PHASES],
        "tables": [
            table_by_cell(
                f"Where the time of a run goes: {recipe}, {strategy}",
                rows,
                FIXED_COST,
                _unrecorded,
                _seeds(rows),
            )
            for recipe, strategy, rows in by_configuration(tables.startup)
        ],
    }


def _unrecorded(row: Any) -> TableCell | None:
    if pd.notna(row.run_seconds):
        return None
    # A run that came to its end has no figures only when nothing took them.
    return status(NOT_RECORDED if row.status in TIMED else row.status)


FIXED_COST = [
    *(
        Column(phase, seconds, fmt.significant, group="phases of the start-up, s")
        for phase, seconds in zip(PHASES, PHASE_COLUMNS, strict=True)
    ),
    *(
        Column(PART_NAMES[part], part, fmt.significant, group="parts of the run, s")
        for part in PARTS
    ),
    Column("seconds", "run_seconds", fmt.significant, flags=flags_of, group="whole run"),
    Column("not measured", "unmeasured_share", fmt.percent, group="whole run"),
]


def _seeds(rows: pd.DataFrame) -> list[str]:
    """Notes on how many runs a row stands for, and on runs without these times."""
    notes = []
    known = rows["run_seconds"].notna()
    seeds = rows["count"][known]
    if len(seeds):
        span = fmt.whole_span(seeds)
        notes.append(
            "each row is the only run of its cell, so its spread is unknown"
            if span == "1"
            else f"each row is the run of median length of {span} seeds"
        )
    if (rows["status"].isin(TIMED) & ~known).any():
        notes.append(f"{NOT_RECORDED}: the run was made before these times were measured")
    return notes
