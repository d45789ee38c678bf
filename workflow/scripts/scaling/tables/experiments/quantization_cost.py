"""Name quantized variants by their options, and average their accuracy loss over seeds."""

import math
from typing import Any, NamedTuple

import pandas as pd

from scaling.core import numbers as fmt
from scaling.tables.schema import rows_of

STANDARD_ERRORS = 2.0
"""Half the width of a 95 % interval; a mean difference of up to so many counts as noise."""
PLAIN = "max-abs"
WORDS: dict[tuple[str, object], str] = {
    ("rounding", "gptq"): "GPTQ",
    ("weight_scales", "channel"): "a scale per channel",
    ("unsigned", True): "unsigned activations",
    ("logits", "float"): "float logits",
    ("bias", "float"): "float biases",
}


class Cost(NamedTuple):
    """Means over `seeds`: accuracies in %, differences to float32 in points, with their range.

    `standard_error_points` is of the mean difference (`paired_accuracy.mean_difference`), or where
    the table has that for other seeds √(Σ e²) / seeds, with e each seed's; NaN if one has none.
    """

    seeds: int
    float32_percent: float
    accuracy_percent: float
    accuracy_percent_min: float
    accuracy_percent_max: float
    difference_points: float
    difference_points_min: float
    difference_points_max: float
    standard_error_points: float
    agreement_percent: float

    @property
    def within_noise(self) -> bool | None:
        """Whether the mean difference is within two standard errors; None without one."""
        if math.isnan(self.standard_error_points):
            return None
        return abs(self.difference_points) <= STANDARD_ERRORS * self.standard_error_points


def cost(rows: pd.DataFrame) -> Cost:
    """Return the average over one variant's rows of quantization.csv, one per seed.

    Also takes rows of quantization_resnet.csv, which have no errors of means.
    """
    accuracies, differences = rows["accuracy_percent"], rows["difference_points"]
    if "mean_seeds" in rows and rows["mean_seeds"].astype(float).eq(len(rows)).all():
        error = float(rows["mean_standard_error_points"].iloc[0])
    else:
        errors = rows["standard_error_points"].astype(float)
        error = math.sqrt(float(errors.pow(2).sum(skipna=False))) / len(rows)
    return Cost(
        seeds=len(rows),
        float32_percent=float((accuracies - differences).mean()),
        accuracy_percent=float(accuracies.mean()),
        accuracy_percent_min=float(accuracies.min()),
        accuracy_percent_max=float(accuracies.max()),
        difference_points=float(differences.mean()),
        difference_points_min=float(differences.min()),
        difference_points_max=float(differences.max()),
        standard_error_points=error,
        agreement_percent=float(rows["agreement_percent"].mean()),
    )


def difference(row: Any) -> str:
    """Format a mean difference in points, with its 95 % interval if known: `−0.20 ± 0.10`."""
    if pd.isna(row.difference_points):
        return ""
    error = row.standard_error_points
    known = "" if pd.isna(error) else f" ± {STANDARD_ERRORS * error:.2f}"
    return fmt.points(row.difference_points) + known


def reach(row: Any) -> str:
    """Format the range of differences over seeds, `−0.30 to −0.10`, or `one seed`."""
    ends = (row.difference_points_min, row.difference_points_max)
    return "one seed" if row.seeds == 1 else " to ".join(map(fmt.points, ends))


def method(row: Any) -> str:
    """Describe how `row` differs from plain quantization, apart from bits and mistake."""
    words = [said for (column, value), said in WORDS.items() if getattr(row, column) == value]
    return ", ".join(words) or PLAIN


def bits(row: Any) -> str:
    """Format bits as `W4 A8`; float activations are `A32`."""
    activations = 32 if pd.isna(row.activation_bits) else int(row.activation_bits)
    return f"W{int(row.weight_bits)}\u00a0A{activations}"


def low_bits(table: pd.DataFrame) -> pd.DataFrame:
    """Return the correct integer variants of each method that has one below 8 bits.

    They include the method's variants at 8 bits, and a column `method`.
    """
    sound = table[table["activation_bits"].notna() & (table["mistake"] == "")]
    sound = sound.assign(method=[method(row) for row in rows_of(sound)])
    fewer = sound[(sound["weight_bits"] < 8) | (sound["activation_bits"] < 8)]
    return sound[sound["method"].isin(fewer["method"])]
