"""Draw the parts of epochs as bars, and the kernels of one step over time."""

import gzip
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from scaling.claims.claim import nearest
from scaling.claims.scaling import PARTS
from scaling.core import numbers as fmt
from scaling.core.grid import TRACE, Cell
from scaling.report.quantities import on
from scaling.report.table import cell_id, figure
from scaling.tables.schema import configuration, rows_of

FULL = 84.0
"""Width of the longest bar, in % of its row; the rest is for the number beside the bar."""
ENLARGED = 3
"""A recipe's bars are enlarged if the longest bar of all recipes is ≥ 3 times as long as the
recipe's longest. All enlarged bars have one scale."""
COMPUTING, IDLE, MESSAGES = 2, 4, 5
COMMUNICATION = ("nccl", "memcpy ptop")


class Part(NamedTuple):
    """A part of a bar: kind, left edge and width in %, and the number printed inside it."""

    kind: int
    left: float
    width: float
    number: str = ""
    title: str = ""
    attributes: str = ""


class Bar(NamedTuple):
    """A bar: name, parts, text beside it (`total`), and target of its link."""

    name: str
    parts: list[Part]
    total: str = ""
    link: str = ""


def epochs(cells: pd.DataFrame) -> dict[str, list[Bar]]:
    """Return bars of epochs with measured parts, by heading. Much faster recipes are enlarged."""
    known = cells[["utilization", "idle_share", "loading_share"]].notna().any(axis=1)
    timed = cells[cells["status"].eq("ok") & known]
    longest = timed.groupby("recipe", sort=False)["epoch_seconds"].max()
    whole, found = longest.max(), dict[str, list[Bar]]()
    short = longest[longest <= whole / ENLARGED]
    for recipe in longest.index:
        factor = int(whole / short.max()) if recipe in short else 1
        own = timed[timed["recipe"] == recipe]
        for row in rows_of(own.sort_values(["gpus", "strategy", "batch_size"], kind="stable")):
            heading = on(row) + f", {factor} times enlarged" * (factor > 1)
            found.setdefault(heading, []).append(_epoch(row, factor * FULL / whole))
    return found


def _epoch(row: Any, scale: float) -> Bar:
    """Return the bar of one row's epoch. `scale` is the width of one second in %."""
    parts = []
    for kind, name in enumerate(PARTS, 1):
        share = max(0.0, np.nan_to_num(getattr(row, name)))
        width = round(float(scale * share * row.epoch_seconds), 2)
        seconds = fmt.significant(share * row.epoch_seconds, 2)
        title = f"{PARTS[name]}: {fmt.percent(share)}, {seconds} s"
        shown = figure("", row, name, getattr(row, name))
        parts.append(Part(kind, 0, width, seconds * (width > 7), title, shown.attributes))
    return Bar(f"b = {row.batch_size:g}", parts, fmt.seconds(row.epoch_seconds), f"#{cell_id(row)}")


def timelines(cells: pd.DataFrame, runs: Path) -> dict[str, list[Bar]]:
    """Return bars of one traced step of each recipe and strategy, by heading.

    The step is from the largest number of GPUs with a trace, and the batch size nearest to 128.
    """
    steps = dict[str, tuple[Any, pd.DataFrame]]()
    for row in rows_of(nearest(cells).sort_values("gpus", ascending=False, kind="stable")):
        name = configuration(row.recipe, row.strategy)
        first = Cell(row.recipe, row.strategy, row.gpus, row.batch_size, 0).trace_path(runs)
        for path in sorted(first.parents[1].rglob(TRACE), key=lambda path: (len(path.parts), path)):
            if name not in steps and len(spans := spans_of(path)):
                steps[name] = row, spans
    scale = FULL / max((max(spans["high"]) for _, spans in steps.values()), default=1)
    found = {}
    for name, (row, spans) in steps.items():
        end, devices = max(spans["high"]), [*spans.groupby("device")]
        idle = Part(IDLE, 0, round(scale * end, 2), "", "idle")
        # A rank sees its own GPU alone, as GPU 0.
        name_of = 0 if len({device.split(", ")[0] for device, _ in devices}) > 1 else 1
        heading = f"{name}, {row.gpus:g} × {row.batch_size:g}: {fmt.significant(end / 1e3)} ms"
        found[heading] = [
            Bar(device.split(", ")[name_of], [idle, *(_span(one, scale) for one in rows_of(own))])
            for device, own in devices
        ]
    return found


def _span(row: Any, scale: float) -> Part:
    return Part(row.kind, round(scale * row.low, 2), round(scale * (row.high - row.low), 2))


def spans_of(path: Path) -> pd.DataFrame:
    """Return spans of a traced step: GPU, kind (`COMPUTING` or `MESSAGES`), start and end in µs.

    Columns are `device`, `kind`, `low` and `high`. Spans of one GPU and kind are merged if they are
    less than 0.5 % of the step apart.
    """
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    names = {one["pid"]: one["args"]["name"] for one in events if one["ph"] == "M"}
    rows = []
    for one in [one for one in events if one["ph"] == "X" and "GPU" in names[one["pid"]]]:
        communicates = any(word in one["name"].lower() for word in COMMUNICATION)
        if communicates or one.get("cat") != "gpu_user_annotation":
            kind = MESSAGES if communicates else COMPUTING
            rows.append([names[one["pid"]], kind, one["ts"], one["ts"] + one["dur"]])
    table = pd.DataFrame(rows, columns=["device", "kind", "low", "high"]).sort_values("low")
    table = table.astype({"low": float, "high": float})
    messages = table[table["kind"] == MESSAGES].groupby("device")["high"].first()
    if table["device"].nunique() > 1:  # The first message is a barrier before the step.
        table = table[table["low"] >= table["device"].map(messages)]
    table[["low", "high"]] -= table["low"].min()
    gap, keys = 0.005 * table["high"].max(), ["device", "kind"]
    table["end"] = table.groupby(keys)["high"].cummax()
    apart = table["low"] > table.groupby(keys)["end"].shift(fill_value=-np.inf) + gap
    table["block"] = apart.groupby([table[key] for key in keys]).cumsum()
    return table.groupby([*keys, "block"], as_index=False).agg({"low": "min", "high": "max"})
