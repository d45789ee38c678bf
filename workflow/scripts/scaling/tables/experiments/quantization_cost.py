"""Name quantized variants by their options, and average their accuracy loss over seeds."""

import math
from dataclasses import dataclass
from typing import Any

import pandas as pd

from scaling.core import numbers as fmt
from scaling.core.paired_accuracy import MeanDifference
from scaling.tables.schema import rows_of

STANDARD_ERRORS = 2.0
"""Half the width of a 95 % interval; a mean difference of up to so many counts as noise."""
PLAIN = "max-abs"
WORDS: dict[tuple[str, object], str] = {
    ("rounding", "gptq"): "GPTQ",
    ("weight_range", "mse"): "weight ranges by MSE",
    ("weight_range", "output"): "weight ranges by output error",
    ("activation_range", "mse"): "activation ranges by MSE",
    ("activation_range", "percentile"): "activation ranges by percentile",
    ("weight_scales", "channel"): "a scale per channel",
    ("bias_correction", True): "bias correction",
    ("unsigned", True): "unsigned activations",
    ("logits", "float"): "float logits",
    ("bias", "float"): "float biases",
}
OF_WEIGHTS = {"rounding", "weight_range", "weight_scales", "bias_correction"}
"""Options that apply to float activations."""


@dataclass(frozen=True)
class Cost:
    """Means over `seeds`: accuracies in %, differences to float32 in points, with their range.

    `standard_error_points` is of the mean difference, image by image over the seeds (see
    `paired_accuracy.mean_difference`). If the table has it for other seeds, it is √(Σ e²) / seeds,
    with e each seed's standard error. NaN if a seed has none.
    """

    seeds: int
    float32_percent: float
    accuracy_percent: float
    accuracy_range: tuple[float, float]
    difference_points: float
    difference_range: tuple[float, float]
    standard_error_points: float
    agreement_percent: float

    @property
    def within_noise(self) -> bool | None:
        """Whether the mean difference is within two standard errors; None without one."""
        if math.isnan(self.standard_error_points):
            return None
        return abs(self.difference_points) <= STANDARD_ERRORS * self.standard_error_points

    @property
    def difference(self) -> str:
        """The difference and its 95 % interval if that is known, `−0.20 ± 0.10`."""
        return difference(self.difference_points, self.standard_error_points)

    @property
    def reach(self) -> str:
        """The range over seeds, `−0.30 to −0.10`, or `one seed`."""
        ends = map(fmt.points, self.difference_range)
        return "one seed" if self.seeds == 1 else " to ".join(ends)


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
        accuracy_range=(float(accuracies.min()), float(accuracies.max())),
        difference_points=float(differences.mean()),
        difference_range=(float(differences.min()), float(differences.max())),
        standard_error_points=error,
        agreement_percent=float(rows["agreement_percent"].mean()),
    )


def between(paired: pd.DataFrame, stage: str, reference: str) -> MeanDifference | None:
    """Return `stage` minus `reference` from quantization_paired.csv, None if not compared."""
    rows = paired[(paired["stage"] == stage) & (paired["reference_stage"] == reference)]
    figures = rows[["difference_points", "standard_error_points"]].itertuples(index=False)
    return next((MeanDifference(*row) for row in figures), None)


def difference(points: float, standard_error: float) -> str:
    """Format a difference in points, with its 95 % interval if known."""
    known = "" if pd.isna(standard_error) else f" ± {STANDARD_ERRORS * standard_error:.2f}"
    return fmt.points(points) + known


def method(row: Any) -> str:
    """Describe how `row` differs from plain quantization, apart from bits and mistake."""
    floats = pd.isna(row.activation_bits)
    found = [
        said
        for (column, value), said in WORDS.items()
        if getattr(row, column) == value and not (floats and column not in OF_WEIGHTS)
    ]
    both = "weight ranges by MSE, activation ranges by MSE"
    return ", ".join(found).replace(both, "ranges by MSE") or PLAIN


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
