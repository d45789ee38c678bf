"""The page of published studies: their printed figures, the errors in them, all side by side."""

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from grader import judged
from grader.cells import of_strategy
from grader.findings import judge
from grader.intervals import of
from grader.study import CIFAR10_TRAIN_IMAGES, PublishedStudy, by_name
from scaling.core import command_line, files
from scaling.core import numbers as fmt
from scaling.figures import style
from scaling.report import page
from scaling.tables.schema import as_csv

COMPARED = {
    "epoch_seconds": ("seconds per epoch", "T", None),
    "speedup": ("speedup", "T1 / T", lambda gpus: gpus),
    "efficiency": ("efficiency", "T1 / T / N", lambda gpus: 1),
    "bandwidth_gb_per_s": (
        "GB/s",
        "own * K * steps / (W - W1 / N).where(W.known & W1.known, T - T1 / N) / 1e9",
        None,
    ),
}
"""What is drawn: in words, its formula, and the ideal of a ratio."""


def comparison(studies: list[PublishedStudy]) -> pd.DataFrame:
    """What follows from the times of every study by one definition, a row for each cell."""
    found = [pd.DataFrame(columns=["study", "strategy", "gpus", "batch_size", *COMPARED])]
    for study in studies:
        for strategy in study.strategies:
            cells = of_strategy(study, strategy, CIFAR10_TRAIN_IMAGES)
            exact = {name: of(one.middle) for name, one in cells.columns.items()}
            cells = cells.with_columns(exact)
            place = {"study": study.name, "strategy": strategy, "gpus": cells.gpus}
            table = pd.DataFrame(place | {"batch_size": cells.batch})
            for name, (_, formula, _) in COMPARED.items():
                value = cells.evaluate(formula).middle
                table[name] = np.where(np.isfinite(value) & (value > 0), value, np.nan)
            found.append(table[(cells.gpus * cells.batch <= cells.images)])
    return pd.concat(found[min(1, len(studies)) :], ignore_index=True)


def draw(comparison: pd.DataFrame) -> Figure | None:
    """Draw a column of panels for each of two GPU counts, a row with one scale for each metric.

    The GPU counts are the largest two on which a study has a time.
    """
    timed = comparison[comparison["gpus"] > 1].dropna(subset="epoch_seconds")
    counts = sorted(timed["gpus"].unique())[-2:]
    if not counts:
        return None
    timed = timed.assign(name=timed["study"] + " · " + timed["strategy"])
    studies = {name: rows.sort_values("batch_size") for name, rows in timed.groupby("name")}
    places = [(metric, gpus) for metric in COMPARED for gpus in counts]
    titles = [f"{fmt.gpus(gpus)} · {COMPARED[metric][0]}" for metric, gpus in places]
    figure, panels = style.panels(titles, "batch size per GPU")
    shown = timed[timed["gpus"].isin(counts)]
    for axes, (metric, gpus) in zip(panels, places, strict=True):
        cells = [rows[(rows["gpus"] == gpus) & rows[metric].notna()] for rows in studies.values()]
        style.lines(axes, cells, "batch_size", metric)
        style.batch_axis(axes, sorted(shown["batch_size"].unique()))
        values, ideal = shown[metric].dropna(), COMPARED[metric][2]
        if ideal:
            axes.axhline(ideal(gpus), **style.IDEAL)
            axes.set_ylim(0, 1.1 * max(ideal(counts[-1]), values.max()))
        elif len(values):
            style.log2_axis(axes.yaxis, style.POWERS)
            axes.set_ylim(values.min() / 1.25, values.max() * 1.25)
    style.legend(figure, studies)
    return figure


@command_line.script
def main(
    folders: tuple[Path, ...],
    networks: Path,
    template: Path,
    output: Path,
    table: Path,
    figure: Path,
) -> None:
    """Write the page of the studies in `folders` with our `networks`, and what it compares."""
    ours, found = pd.read_csv(networks), by_name(folders)
    compared = comparison([study for _, study in found.values()])
    files.write_text(table, as_csv(compared))
    with style.style("comparison"):
        style.save(draw(compared), figure)
    studies = [
        judged.Judged(study, str(folder), judge(study, CIFAR10_TRAIN_IMAGES), ours)
        for folder, study in found.values()
    ]
    html = page.render(
        template,
        title="Published studies, replayed and audited",
        tables=judged.index((one.overview(f"#{one.id}") for one in studies), studies),
        studies=studies,
        trainings=len(ours[["biases", "seed"]].drop_duplicates()),
        figure=page.inline_svg(figure),
    )
    files.write_text(output, html)
