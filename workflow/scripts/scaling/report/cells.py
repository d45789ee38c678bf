"""One cell opened from the map: its epochs, memory, message, findings, record and command."""

import base64
import gzip
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from scaling.core import files
from scaling.core import numbers as fmt
from scaling.core.grid import Cell
from scaling.report.frames import shown_once
from scaling.report.overview import bars, cell_id, label
from scaling.tables.schema import StudyTables

LARGE = {"text/csv": 50_000, "application/json": 10_000}
"""Bytes above which a file of a kind is compressed inside the page."""


@dataclass(frozen=True)
class Dot:
    """One epoch of one rank: its place from the shortest (0) to the longest (100), and words."""

    x: float
    rank: int
    words: str


@dataclass(frozen=True)
class CellPage:
    """What the page of a cell shows; `before` and `after` are the ids of its neighbours."""

    id: str
    title: str
    status: str
    facts: list[tuple[str, str]]
    dots: list[Dot]
    ends: tuple[str, str]
    parts: list[float]
    findings: list[str]
    records: list[tuple[str, str]]
    log: str
    command: str
    before: str
    after: str


def pages(tables: StudyTables, cells: pd.DataFrame, runs: Path, logs: Path) -> list[CellPage]:
    """The pages of all cells, in the order of the map, from the folders of records and logs."""
    rows = list(shown_once(cells).itertuples())
    ids = [cell_id(row) for row in rows]
    shares = {bar["id"]: bar["parts"] for bar in bars(cells)}
    runs_of = tables.provenance[["seed", "repeat"]].drop_duplicates().astype(int)
    return [
        _page(
            tables,
            row,
            [
                Cell(row.recipe, row.strategy, row.gpus, row.batch_size, *run)
                for run in runs_of.itertuples(index=False)
            ],
            (runs, logs),
            shares.get(cell_id(row), []),
            (ids[index - 1], ids[(index + 1) % len(ids)]),
        )
        for index, row in enumerate(rows)
    ]


def _page(
    tables: StudyTables,
    row: Any,
    own: list[Cell],
    folders: tuple[Path, Path],
    parts: list[float],
    around: tuple[str, str],
) -> CellPage:
    runs, logs = folders
    found = [path for path in (cell.record_path(runs) for cell in own) if path.exists()]
    written = [path for path in (cell.log_path(logs) for cell in own) if path.exists()]
    epochs = [
        epoch
        for path in found
        for epoch in files.read_json(path)["epochs"]
        if epoch["role"] == "measured"
    ]
    dots, ends = _dots(epochs)
    return CellPage(
        id=cell_id(row),
        title=label(row),
        status=row.status,
        facts=_facts(row),
        dots=dots,
        ends=ends,
        parts=parts,
        findings=_findings(tables.audit, row),
        records=[download(path, "application/json") for path in found],
        log="".join(map(files.log_end, written)),
        command=f"snakemake {own[0].record_path(Path('results/runs')).as_posix()}",
        before=around[0],
        after=around[1],
    )


def _facts(row: Any) -> list[tuple[str, str]]:
    known: dict[str, tuple[Any, Callable[[Any], str]]] = {
        "epoch": (row.epoch_seconds, fmt.seconds),
        "speedup": (row.speedup if row.gpus > 1 else None, fmt.times),
        "test accuracy": (getattr(row, "test_accuracy", None), fmt.percent),
        "peak memory": (row.peak_memory_bytes, fmt.data),
        "Slurm job": (row.slurm_job_id or None, str),
        "Slurm GPUs": (row.slurm_gpus or None, str),
        "message": (row.message or None, str),
    }
    return [(name, write(value)) for name, (value, write) in known.items() if pd.notna(value)]


def _dots(epochs: list[dict[str, Any]]) -> tuple[list[Dot], tuple[str, str]]:
    if not epochs:
        return [], ("", "")
    seconds = [epoch["seconds"] for epoch in epochs]
    low, high = min(seconds), max(seconds)
    width = (high - low) or 1.0
    dots = [
        Dot(
            x=round(100 * (epoch["seconds"] - low) / width, 1),
            rank=epoch["rank"],
            words=f"epoch {epoch['epoch']}, rank {epoch['rank']}: {fmt.seconds(epoch['seconds'])}",
        )
        for epoch in epochs
    ]
    return dots, (fmt.seconds(low), fmt.seconds(high))


def _findings(audit: pd.DataFrame, row: Any) -> list[str]:
    """The errors and warnings of a cell; remarks are in the appendix."""
    own = audit[audit["severity"] != "info"]
    for key in ("recipe", "strategy", "gpus", "batch_size"):
        own = own[own[key] == getattr(row, key)]
    return [
        "{}: {} (found {}, expected {})".format(
            one.severity, one.message.replace("_", " "), *fmt.told_apart(one.found, one.expected)
        )
        for one in own.itertuples()
    ]


def download(path: Path, kind: str) -> tuple[str, str]:
    """The name of a file and a link that holds it; a large one is compressed."""
    name, content = path.name, path.read_bytes()
    if len(content) > LARGE[kind]:
        name, content, kind = f"{name}.gz", gzip.compress(content, mtime=0), "application/gzip"
    return name, f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"
