"""The detail page of a cell: epochs, memory, message, findings, record and command."""

import base64
import gzip
import math
from pathlib import Path
from typing import Any

import pandas as pd

from scaling.claims.claim import label
from scaling.core import files
from scaling.core import numbers as fmt
from scaling.core.grid import Cell
from scaling.report.cell_map import bars, cell_id
from scaling.report.frames import shown_once
from scaling.report.table import Figure
from scaling.report.views import printed
from scaling.tables.schema import StudyTables, rows_of

COMPRESSED_FROM = {"text/csv": 50_000, "application/json": 10_000}
"""Size in bytes above which a file of this kind is compressed inside the page; of others none."""


def pages(tables: StudyTables, cells: pd.DataFrame, runs: Path, logs: Path) -> list[dict[str, Any]]:
    """Return the contents of each cell's page, in the order of the map.

    Uses the tables and the folders of records and logs. `dots` are epochs of ranks, `before` and
    `after` the ids of the neighbouring cells. A page has the trace of one run.
    """
    rows = list(rows_of(shown_once(cells)))
    ids = [cell_id(row) for row in rows]
    shares = {bar["id"]: bar["parts"] for bar in bars(cells)}
    numbers = tables.provenance[["seed", "repeat"]].drop_duplicates().astype(int)
    made = []
    for index, row in enumerate(rows):
        place = (row.recipe, row.strategy, row.gpus, row.batch_size)
        own = [Cell(*place, *run) for run in numbers.itertuples(index=False)]
        records = [path for cell in own if (path := cell.record_path(runs)).exists()]
        traces = [path for cell in own if (path := cell.trace_path(runs)).exists()][:1]
        written = [path for cell in own if (path := cell.log_path(logs)).exists()]
        made.append(
            {
                "id": ids[index],
                "title": label(row),
                "status": fmt.words(row.status),
                "facts": _facts(row),
                **_dots([each for path in records for each in files.read_json(path)["epochs"]]),
                "parts": shares.get(ids[index], []),
                "findings": _findings(tables.audit, row),
                "records": [download(path, "application/json") for path in records],
                "traces": [download(path, "application/gzip") for path in traces],
                "log": "".join(map(files.log_end, written)),
                "command": f"snakemake {own[0].record_path(Path('results/runs')).as_posix()}",
                "before": ids[index - 1],
                "after": ids[(index + 1) % len(ids)],
            }
        )
    return made


def _facts(row: Any) -> list[tuple[str, str | Figure]]:
    """Return what is known of a cell: its figures, and what else its run said."""
    share = row.peak_memory_bytes / row.memory_capacity_bytes
    of_capacity = f" ({fmt.percent(share)})" if pd.notna(share) else ""
    found: dict[str, str | Figure] = {
        name: printed(row, quantity, write)
        for name, quantity, write in (
            ("epoch", "epoch_seconds", fmt.seconds),
            ("speedup", "speedup", fmt.times),
            ("test accuracy", "test_accuracy", fmt.percent),
            ("memory", "peak_memory_bytes", lambda peak: f"{fmt.data(peak)}{of_capacity}"),
        )
        if pd.notna(getattr(row, quantity, None)) and (name != "speedup" or row.gpus > 1)
    }
    found |= {"Slurm job": row.slurm_job_id, "Slurm GPUs": row.slurm_gpus, "message": row.message}
    return [(name, text) for name, text in found.items() if not isinstance(text, float) and text]


def _dots(epochs: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the measured epochs of all ranks, placed from the shortest (0) to longest (100)."""
    epochs = [epoch for epoch in epochs if epoch["role"] == "measured"]
    seconds = [epoch["seconds"] for epoch in epochs] or [0.0]
    low, high = min(seconds), max(seconds)
    dots = [
        {
            "x": round(100 * (epoch["seconds"] - low) / ((high - low) or 1.0), 1),
            "rank": epoch["rank"],
            "words": f"epoch {epoch['epoch']}, rank {epoch['rank']}: "
            + fmt.seconds(epoch["seconds"]),
        }
        for epoch in epochs
    ]
    shortest, longest = fmt.distinguishable(low, high)
    return {"dots": dots, "ends": (shortest, f"{longest} s")}


def _findings(audit: pd.DataFrame, row: Any) -> list[str]:
    """Return the warnings of a cell."""
    own = audit
    for key in ("recipe", "strategy", "gpus", "batch_size"):
        own = own[own[key] == getattr(row, key)]
    return [
        "{}: {} (found {}, expected {})".format(
            one.severity,
            one.message.replace("_", " "),
            *fmt.distinguishable(one.found, one.expected),
        )
        for one in rows_of(own)
    ]


def download(path: Path, kind: str) -> tuple[str, str]:
    """Return a file's name and a data link with its contents, compressed if large."""
    name, content = path.name, path.read_bytes()
    if len(content) > COMPRESSED_FROM.get(kind, math.inf):
        name, content, kind = f"{name}.gz", gzip.compress(content, mtime=0), "application/gzip"
    return name, f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"
