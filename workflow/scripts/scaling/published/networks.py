"""Which of our quantized networks, sound or mistaken, are as accurate as a document prints."""

from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from scaling.config.config_file import read_config
from scaling.config.scheme import STAGES, Scheme
from scaling.config.stored import CONFIG
from scaling.core import numbers as fmt
from scaling.core.records.quantization import VARIANT, read

COLUMNS = ["stage", "mistake", "accuracy_percent"]
SOUND = "no mistake"


def of_the_lab(studies: Path) -> list[Path]:
    """List the stored studies whose network has the lab's biases: none, or its last layer's."""
    return [
        path.parent
        for path in sorted(studies.glob(f"*/{CONFIG}"))
        if (read_config(path).get("quantization") or {}).get("biases", "all") != "all"
    ]


def accuracies(records: Iterable[Path]) -> pd.DataFrame:
    """Make a row for each variant of each network, and for the network: COLUMNS, in %."""
    rows = []
    for document in read(VARIANT, records):
        scheme = Scheme.of(document["scheme"], "the scheme")
        integers = scheme.activation_bits is not None
        stage = STAGES[1 + integers + (integers and scheme.bias == "int32")]
        rows += [
            (STAGES[0], SOUND, document["float32"]["accuracy_percent"]),
            (stage, scheme.mistake or SOUND, document["accuracy_percent"]),
        ]
    return pd.DataFrame(rows, columns=COLUMNS)


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
