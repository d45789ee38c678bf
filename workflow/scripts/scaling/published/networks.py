"""Which quantized networks of ours, sound or mistaken, are as accurate as a document prints."""

import pandas as pd

from scaling.core import numbers as fmt

COLUMNS = ["biases", "seed", "stage", "mistake", "accuracy_percent"]
"""Of studies/published/lab_networks.csv: a row for each training and what was made of it."""
SOUND = "no mistake"


def beside(printed: pd.DataFrame, ours: pd.DataFrame) -> pd.DataFrame:
    """Add to each printed accuracy our variants of its stage that have it, else the nearest.

    A variant has it where the lowest and the highest of its accuracies (`ranges`) have it between
    them; `beyond` are the points to the nearer of both where none has it.
    """
    figures = zip(printed["accuracy_percent"].astype(float), printed["stage"], strict=True)
    found = [_alike(figure, ours[ours["stage"] == stage]) for figure, stage in figures]
    columns = ["variants", "ranges", "beyond"]
    return printed.join(pd.DataFrame(found, columns=columns, index=printed.index))


def _alike(printed: float, ours: pd.DataFrame) -> tuple[str, str, str]:
    ends = ours.groupby("mistake")["accuracy_percent"].agg(["min", "max"])
    off = printed - pd.Series(printed, ends.index).clip(ends["min"], ends["max"])
    nearest = ends[off.abs() == off.abs().min()].sort_index(key=lambda names: names != SOUND)
    ranges = [f"{low:.2f}–{high:.2f}" for low, high in nearest.itertuples(index=False)]
    points = [fmt.points(float(off[name])) for name in nearest.index[:1] if off[name]]
    return "; ".join(nearest.index), "; ".join(ranges), "".join(points)
