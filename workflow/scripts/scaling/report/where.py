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
from scaling.core.grid import Cell
from scaling.figures import configuration
from scaling.report.table import cell_id, figure
from scaling.tables.schema import rows_of

FULL = 84.0
"""Width of the longest bar, in % of its row; the rest of the row is for its number."""
ENLARGED = 3
"""A recipe's bars are enlarged if the longest bar of all recipes is ≥ 3 times its longest bar."""
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


class Group(NamedTuple):
    """Bars with a common axis, under a heading."""

    heading: str
    bars: list[Bar]


def epochs(cells: pd.DataFrame) -> list[Group]:
    """Return bars of epochs with their measured parts. Bars of much faster recipes are enlarged."""
    known = cells[["utilization", "idle_share", "loading_share"]].notna().any(axis=1)
    timed = cells[cells["status"].eq("ok") & known]
    longest = timed.groupby("recipe", sort=False)["epoch_seconds"].max()
    whole, found = longest.max(), []
    for recipe, most in longest.items():
        factor = int(whole / most) if whole >= ENLARGED * most else 1
        own = timed[timed["recipe"] == recipe].sort_values("batch_size")
        groups: Any = own.groupby(["gpus", "strategy"])
        for (gpus, strategy), rows in groups:
            heading = f"{configuration(str(recipe), strategy)}, {fmt.gpus(gpus)}"
            heading += f", {factor} times enlarged" * (factor > 1)
            bars = [_epoch(row, factor * FULL / whole) for row in rows_of(rows)]
            found.append(Group(heading, bars))
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


def timelines(cells: pd.DataFrame, runs: Path) -> list[Group]:
    """Return bars of one traced step of each recipe and strategy.

    The step is from the largest number of GPUs with a trace, and the batch size nearest to 128.
    """
    steps: dict[str, tuple[str, list[tuple[str, int, float, float]]]] = {}
    for row in rows_of(nearest(cells).sort_values("gpus", ascending=False, kind="stable")):
        name = configuration(row.recipe, row.strategy)
        path = Cell(row.recipe, row.strategy, row.gpus, row.batch_size, 0).trace_path(runs)
        if name not in steps and path.exists() and (spans := spans_of(path)):
            steps[name] = f"{name}, {row.gpus:g} × {row.batch_size:g}", spans
    ends = {name: max(end for *_, end in spans) for name, (_, spans) in steps.items()}
    scale, found = FULL / max(ends.values(), default=1), []
    for name, (heading, spans) in steps.items():
        idle, bars = Part(IDLE, 0, round(scale * ends[name], 2), "", "idle"), []
        devices = list(dict.fromkeys(device for device, *_ in spans))
        # A rank sees its own GPU alone, as GPU 0.
        name_of = 0 if len({device.split(", ")[0] for device in devices}) > 1 else 1
        for device in devices:
            own = [
                Part(kind, round(scale * low, 2), round(scale * (high - low), 2))
                for of, kind, low, high in spans
                if of == device
            ]
            bars.append(Bar(device.split(", ")[name_of], [idle, *own]))
        found.append(Group(f"{heading}: {fmt.significant(ends[name] / 1e3)} ms", bars))
    return found


def spans_of(path: Path) -> list[tuple[str, int, float, float]]:
    """Return spans of a traced step: (device, `COMPUTING` or `MESSAGES`, start, end) in µs.

    Devices are GPUs. Spans of the same kind are merged if they are under 0.5 % of the step apart.
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
    messages = table[table["kind"] == MESSAGES].groupby("device")["high"].first()
    if table["device"].nunique() > 1:  # The first message is a barrier before the step.
        began = table["device"].map(messages)
        table = table[table["low"] >= began]
    table[["low", "high"]] -= table["low"].min()
    gap, found = 0.005 * table["high"].max(), list[tuple[str, int, float, float]]()
    groups: Any = table.groupby(["device", "kind"])
    for (device, kind), own in groups:
        ends = own["high"].cummax().shift(fill_value=-np.inf)
        blocks = own.groupby((own["low"] > ends + gap).cumsum())
        spans = blocks.agg(low=("low", "min"), high=("high", "max"))
        found += [(device, kind, one.low, one.high) for one in rows_of(spans)]
    return found
