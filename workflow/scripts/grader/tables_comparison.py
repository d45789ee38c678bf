"""Published studies side by side: time, speedup, efficiency and bandwidth, as table and figure."""

from collections.abc import Mapping
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from grader.study import by_name
from scaling.core import command_line
from scaling.core import numbers as fmt
from scaling.core.grid import CELL_KEYS
from scaling.figures import style
from scaling.tables import schema
from scaling.tables.communication import SUBTRACTIONS

COMPARISON = schema.table(
    "comparison",
    "published",
    """study:text model:text hardware:text recipe:text strategy:text gpus batch_size
    status:text samples epoch_seconds epoch_seconds_min epoch_seconds_max count
    speedup efficiency estimate:text communication_seconds bandwidth_gb_per_s utilization""",
)
LINE = ["recipe", "strategy"]
METRICS = {
    "epoch_seconds": "seconds per epoch",
    "speedup": "speedup",
    "efficiency": "efficiency",
    "bandwidth_gb_per_s": "GB/s",
}
RATIOS = {"speedup": lambda gpus: gpus, "efficiency": lambda gpus: 1}
"""The metrics that are ratios, and the ideal of each."""


def of_study(
    name: str, tables: Mapping[str, pd.DataFrame], model: str, hardware: str
) -> pd.DataFrame:
    """The figures of one study from its timing, speedup and bandwidth: one row per cell.

    Communication and bandwidth are by one estimate for each recipe and strategy, see
    `by_one_estimate`; `estimate` says which, and is empty where a cell has no communication time.
    """
    known = by_one_estimate(tables["bandwidth"]).dropna(subset="communication_seconds")
    columns = [*CELL_KEYS, "estimate", "communication_seconds", "bandwidth_gb_per_s", "utilization"]
    table = tables["speedup"].merge(known[columns], how="left", on=CELL_KEYS)
    table = table.merge(tables["timing"][[*CELL_KEYS, "samples"]], how="left", on=CELL_KEYS)
    return table.assign(study=name, model=model, hardware=hardware)[list(COMPARISON.types)]


def by_one_estimate(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of one estimate by subtraction for each recipe and strategy of `table`.

    `table` is one of communication or of bandwidths. Only estimates by subtraction exist in every
    study. Uses the one without loading if every cell that has one of whole epochs has it too, else
    that of whole epochs.
    """
    whole, without = SUBTRACTIONS
    known = table.dropna(subset="communication_seconds")
    cells = known.groupby([*LINE, "estimate"]).size().unstack(fill_value=0)
    cells = cells.reindex(columns=[whole, without], fill_value=0)
    apart = (cells[without] > 0) & (cells[without] >= cells[whole])
    lines = table[LINE].merge(apart.rename("apart").reset_index(), how="left", on=LINE)
    chosen = lines["apart"].eq(True).map({True: without, False: whole}).to_numpy()
    return table[table["estimate"].to_numpy() == chosen]


def draw_comparison(comparison: pd.DataFrame) -> Figure | None:
    """Draw a column of panels for each of two GPU counts, a row with one scale for each metric.

    The GPU counts are the largest two on which a study has a time. A batch larger than its study's
    training set cannot be drawn from it, and is left out.
    """
    table = comparison[~(comparison["batch_size"] > comparison["samples"])]
    table = table[table["gpus"] > 1].copy()
    timed = table.dropna(subset="epoch_seconds")
    counts = sorted({int(gpus) for gpus in timed["gpus"]})[-2:]
    if not counts:
        return None
    keys = zip(table["study"], table["recipe"], table["strategy"], strict=True)
    table["name"] = [" · ".join(dict.fromkeys(map(str, key))) for key in keys]
    groups = table.groupby("name", sort=False)
    studies = {str(name): rows.sort_values("batch_size") for name, rows in groups}
    places = [(metric, gpus) for metric in METRICS for gpus in counts]
    titles = [f"{fmt.gpus(gpus)} · {METRICS[metric]}" for metric, gpus in places]
    figure, panels = style.panels(titles, "batch size per GPU")
    shown = timed[timed["gpus"].isin(counts)]
    batches = sorted({int(size) for size in shown["batch_size"]})
    for axes, (metric, gpus) in zip(panels, places, strict=True):
        cells = [rows[(rows["gpus"] == gpus) & rows[metric].notna()] for rows in studies.values()]
        style.lines(axes, cells, "batch_size", metric, "comparison")
        style.batch_axis(axes, batches)
        values = shown[metric].dropna()
        if metric in RATIOS:
            highest = max(RATIOS[metric](counts[-1]), values.max() if len(values) else 0)
            axes.axhline(RATIOS[metric](gpus), **style.IDEAL)
            axes.set_ylim(0, 1.1 * highest)
        elif len(values):
            style.log2_axis(axes.yaxis, style.POWERS)
            axes.set_ylim(values.min() / 1.25, values.max() * 1.25)
    style.legend(figure, studies)
    return figure


@command_line.script
def main(tables: Path, output: Path, figure: Path, folders: tuple[Path, ...] = ()) -> None:
    """Write comparison.csv, a row per cell of each study, and draw it."""
    found = []
    for name, (_, printed) in by_name(folders).items():
        own = schema.read_all(["timing", "speedup", "bandwidth"], tables, name)
        found.append(of_study(name, own, printed.model, printed.description.hardware))
    empty = pd.DataFrame(columns=list(COMPARISON.types))
    table = pd.concat(found, ignore_index=True) if found else empty
    schema.write(COMPARISON, table, output)
    with style.style("comparison"):
        style.save(draw_comparison(table), figure)
