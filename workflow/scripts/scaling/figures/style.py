"""Draw panels, lines, labels and axes in the common style of all figures."""

import io
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator
from matplotlib.transforms import ScaledTranslation

from scaling.claims.claim import on_several_gpus
from scaling.core import files
from scaling.figures import PALETTE
from scaling.tables.schema import StudyTables, configuration

matplotlib.use("agg")

INK, SOFT, LINE, PAPER, FAINT = "#1b1f23", "#59636c", "#d7dde2", "#ffffff", "#b8b8b8"
VARIABLES = {INK: "ink", SOFT: "soft", LINE: "line", PAPER: "paper", FAINT: "faint"}
VARIABLES |= {colour: f"colour-{at}" for at, colour in enumerate(PALETTE, 1)}
"""Maps each colour in a figure's SVG to a CSS variable of the page."""
STYLE = Path(__file__).parents[4] / "report/figures.mplstyle"
PIXELS = 72
"""Units per inch in Matplotlib's SVG. The page shows one unit as one pixel."""
WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 358, 190, 44, 32, 60
LETTER, TEXT = 8.2, 14.5
"""Width of a letter and height of a line in a label, in pixels."""
MARKERS = ["o", "s", "^", "D", "v", "P", "X"]
EMPTY = '<svg xmlns="http://www.w3.org/2000/svg"/>\n'
"""Content of a figure's file if there is nothing to draw."""
_IDS = re.compile(
    r' id="(?:figure|axes|patch|text|line2d|legend|matplotlib|xtick|ytick|[A-Z]\w+)[._][\d.]+"'
)
"""Matches unused ids in an SVG. On a page with two figures, each would occur twice."""


class Look(NamedTuple):
    """How a line is drawn, and its label."""

    label: str
    colour: str
    marker: str = "o"
    hollow: bool = False


def save(draw: Callable[[StudyTables], Figure | None], study: StudyTables, path: Path) -> None:
    """Write a study's figure as SVG in the page's colours, or `EMPTY` if there is no data."""
    drawn = io.StringIO(EMPTY)
    with matplotlib.rc_context({"svg.hashsalt": path.stem}, fname=STYLE):
        if (figure := draw(study)) is not None:
            figure.savefig(drawn, format="svg")
    text = re.sub(r'((?:width|height)="[\d.]+)pt"', r'\1"', drawn.getvalue(), count=2)
    text = re.sub(r"'DejaVu Sans'[^;\"]*", "var(--font, sans-serif)", _IDS.sub("", text))
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    for colour, name in VARIABLES.items():
        text = text.replace(colour, f"var(--{name}, {colour})")
    files.write_text(path, text)


def looks(study: StudyTables) -> dict[tuple[str, str], Look]:
    """Return the look of each recipe and strategy of a study. Markers on one GPU are hollow.

    Recipes that ran on several GPUs have the first colours, since colours may repeat.
    """
    ran = pd.concat([on_several_gpus(study.timing), study.timing, study.trained_to_accuracy])
    names = ran[["recipe", "strategy"]].drop_duplicates().itertuples(index=False, name=None)
    return {
        name: Look(configuration(*name), colour, marker, not name[1])
        for name, colour, marker in zip(names, cycle(PALETTE), cycle(MARKERS), strict=False)
    }


def panel(
    title: str,
    label: str,
    x: str,
    column: str,
    drawn: Iterable[tuple[Look, pd.DataFrame]],
    *,
    log: bool = False,
    top: float = 0,
    ticks: Mapping[float, str] | None = None,
) -> tuple[Figure, Axes]:
    """Return a figure and its axes. Each (look, rows) is drawn as a line of `column` over `x`.

    `label` is the text below the x axis. `ticks` maps values on the x axis to texts. The y axis is
    logarithmic if `log`, and includes `top`. Error bars go from `{column}_low` to `{column}_high`.
    They extend the y axis by at most half the range of the values, and are cut there.
    """
    tall = TOP + HEIGHT + BOTTOM
    figure = Figure(figsize=(WIDTH / PIXELS, tall / PIXELS))
    axes = figure.add_axes((LEFT / WIDTH, BOTTOM / tall, 1 - (LEFT + 8) / WIDTH, HEIGHT / tall))
    axes.set_title(title)
    axes.set_xlabel(label)
    drawn = [(look, rows) for look, own in drawn if len(rows := own[own[column].notna()])]
    values, notes = list[pd.DataFrame](), set[str]()
    for at, (look, rows) in enumerate(drawn):
        value = rows[column]
        low, high = (rows.get(f"{column}_{end}", value).fillna(value) for end in ("low", "high"))
        notes |= {"bars: 95 % intervals"} if (high > low).any() else set()
        shift = min(2.5, 12 / len(drawn)) * (at - (len(drawn) - 1) / 2) / PIXELS
        axes.errorbar(
            rows[x],
            value,
            yerr=[(value - low).clip(0), (high - value).clip(0)],
            color=look.colour,
            marker=look.marker,
            markerfacecolor=PAPER if look.hollow else look.colour,
            ecolor=(look.colour, 0.5),
            elinewidth=1.2,
            transform=axes.transData + ScaledTranslation(shift, 0, figure.dpi_scale_trans),
        )
        values.append(pd.DataFrame({"x": rows[x], "value": value, "low": low, "high": high}))
    every = pd.concat(values)
    _y_axis(axes, every, log=log, least=top)
    foot, roof = axes.get_ylim()
    if every["low"].min() < foot or every["high"].max() > roof:
        notes.add("cut at the frame")
    ends = zip(drawn, values, strict=True)
    _labels(axes, [(look, own["value"].iloc[-1]) for (look, _), own in ends])
    _size_axis(axes, every["x"], ticks)
    note(axes, *sorted(notes))
    return figure, axes


def note(axes: Axes, *texts: str) -> None:
    """Append `texts`, which explain marks, to the notes below the label of the x axis."""
    name, _, notes = axes.get_xlabel().partition("\n")
    axes.set_xlabel(f"{name}\n{'; '.join(filter(None, [notes, *texts]))}".rstrip())


def _y_axis(axes: Axes, values: pd.DataFrame, *, log: bool, least: float) -> None:
    """Set limits and ticks of the y axis for all values, `least`, and error bars (see `panel`)."""
    value, low, high = values[["value", "low", "high"]].to_numpy(float).T
    if log:
        value, low, high = (np.log(np.maximum(one, 1e-12)) for one in (value, low, high))
        least = math.log(least) if least else -math.inf
    reach = 0.5 * ((np.ptp(value) if log else max(value)) or abs(value[0]) or 1)
    top = max(min(high.max(), value.max() + reach), least)
    foot = max(low.min(), value.min() - reach) if log else min(0, value.min())
    pad = 0.06 * (top - foot)
    if log:
        axes.set(yscale="log", ylim=(np.exp(foot - pad), np.exp(top + pad)))
        steps = (1, 2, 5) if top - foot < math.log(100) else (1,)
        axes.yaxis.set_major_locator(LogLocator(subs=steps, numticks=15))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_formatter("{x:,.10g}")
    else:
        axes.set_ylim(foot - pad * (foot < 0), top + pad)
        axes.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))


def _labels(axes: Axes, ends: Sequence[tuple[Look, float]]) -> None:
    """Write each line's label right of the axes, near its last point's height, without overlaps."""
    texts = [re.sub(r", (?=\S)", ",\n", look.label) for look, _ in ends]
    wide = max(len(line) for text in texts for line in text.split("\n")) * LETTER + 12
    box, width = axes.get_position(), WIDTH - LEFT - wide
    axes.set_position((box.x0, box.y0, width / WIDTH, box.height))
    axes.title.set_x(-LEFT / width)
    heights = [TEXT * (1 + text.count("\n")) for text in texts]
    points = axes.transData.transform([(1, value) for _, value in ends])
    places = HEIGHT * axes.transAxes.inverted().transform(points)[:, 1]
    places, least = places.clip(TEXT - BOTTOM + 14, HEIGHT + TEXT), -math.inf
    for at in np.argsort(places):
        places[at] = max(places[at], least + heights[at] / 2)
        least = places[at] + heights[at] / 2
    places -= max(0, places.max(initial=0) - HEIGHT - TEXT)
    bold: dict[str, Any] = {"fontweight": "bold", "linespacing": 1.1, "va": "center"}
    for (look, _), text, place in zip(ends, texts, places, strict=True):
        at = (1 + 10 / width, place / HEIGHT)
        axes.text(*at, text, transform=axes.transAxes, color=look.colour, **bold)


def guide(axes: Axes, value: float, text: str) -> None:
    """Draw a dashed horizontal line at `value`, with `text` above its left end."""
    axes.axhline(value, color=SOFT, linestyle="--", linewidth=1)
    above = axes.get_yaxis_transform() + ScaledTranslation(0.03, 0.04, axes.figure.dpi_scale_trans)
    axes.text(0, value, text, transform=above, color=SOFT)


def _size_axis(axes: Axes, sizes: Iterable[float], ticks: Mapping[float, str] | None) -> None:
    """Make the x axis logarithmic over `sizes`, without ticks whose labels would overlap."""
    known = sorted({*sizes})
    axes.set(xscale="log", xlim=(known[0] / 1.35, known[-1] * 1.35))
    names = ticks or {size: f"{size:g}" for size in known}
    place, kept, room = axes.transData.transform, list[float](), math.inf
    for size in sorted(names, reverse=True):
        at, half = place((size, 1))[0] * PIXELS / axes.figure.dpi, LETTER * len(names[size]) / 2
        if at + half < room:
            kept.append(size)
            room = at - half - 5
    axes.set_xticks(kept, [names[size] for size in kept])
    axes.xaxis.set_minor_locator(NullLocator())
