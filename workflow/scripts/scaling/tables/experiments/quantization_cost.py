"""Names a quantized variant by its options, and sums up what it costs in accuracy over seeds."""

import math
from dataclasses import dataclass
from typing import Any

import pandas as pd

from scaling.core import numbers as fmt
from scaling.core.paired_accuracy import MeanDifference
from scaling.tables.schema import rows_of

STANDARD_ERRORS = 2.0
"""A mean difference of no more than this many standard errors is called within noise."""
PLAIN = "max-abs"
UNSIGNED = "unsigned activations"
WORDS: dict[tuple[str, object], str] = {
    ("rounding", "gptq"): "GPTQ",
    ("weight_range", "mse"): "weight ranges by MSE",
    ("weight_range", "output"): "weight ranges by output error",
    ("activation_range", "mse"): "activation ranges by MSE",
    ("activation_range", "percentile"): "activation ranges by percentile",
    ("weight_scales", "channel"): "a scale per channel",
    ("bias_correction", True): "bias correction",
    ("unsigned", True): UNSIGNED,
    ("logits", "float"): "float logits",
    ("bias", "float"): "float biases",
}
OF_WEIGHTS = {"rounding", "weight_range", "weight_scales", "bias_correction"}
"""The options that matter where activations stay floats."""


@dataclass(frozen=True)
class Cost:
    """Means over `seeds`, accuracies in % and differences to float32 in points, with their extent.

    `standard_error_points` is that of the mean difference, image by image over the seeds (see
    `paired_accuracy.mean_difference`). Where the table has it for other seeds than these, it is
    √(Σ e²) / seeds, with e each seed's own. NaN where a seed has none.
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
        """Whether two standard errors hold the mean difference; None without a standard error."""
        if math.isnan(self.standard_error_points):
            return None
        return abs(self.difference_points) <= STANDARD_ERRORS * self.standard_error_points

    @property
    def difference(self) -> str:
        """`−0.20 ± 0.05`, the standard error left out where it is unknown."""
        return difference(self.difference_points, self.standard_error_points)

    @property
    def reach(self) -> str:
        """`−0.30 to −0.10`, or that there is one seed."""
        low, high = self.difference_range
        return "one seed" if self.seeds == 1 else f"{fmt.points(low)} to {fmt.points(high)}"


def cost(rows: pd.DataFrame) -> Cost:
    """Sum up one variant's rows in quantization.csv, one for each seed and at least one.

    Rows of quantization_resnet.csv, which has no errors of means, will do.
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
    """Look up `stage` minus `reference` in quantization_paired.csv, None where not compared."""
    rows = paired[(paired["stage"] == stage) & (paired["reference_stage"] == reference)]
    figures = rows[["difference_points", "standard_error_points"]].itertuples(index=False)
    return next((MeanDifference(*row) for row in figures), None)


def difference(points: float, standard_error: float) -> str:
    """Write a difference in points with its standard error, where that is known."""
    known = "" if pd.isna(standard_error) else f" ± {standard_error:.2f}"
    return fmt.points(points) + known


def method(row: Any) -> str:
    """Say where `row` differs from plain quantization, but for its bits and its mistake."""
    floats = pd.isna(row.activation_bits)
    found = [
        said
        for (column, value), said in WORDS.items()
        if getattr(row, column) == value and not (floats and column not in OF_WEIGHTS)
    ]
    both = "weight ranges by MSE, activation ranges by MSE"
    return ", ".join(found).replace(both, "ranges by MSE") or PLAIN


def bits(row: Any) -> str:
    """Write `W4 A8`; activations that stay floats are `A32`."""
    activations = 32 if pd.isna(row.activation_bits) else int(row.activation_bits)
    return f"W{int(row.weight_bits)}\u00a0A{activations}"


def low_bits(table: pd.DataFrame) -> pd.DataFrame:
    """Select the correct integer variants by each method that has one below 8 bits, with `method`.

    A method's variants at 8 bits are among them: a curve starts there. Activations of 8 bits have a
    sign, so a method is one with its unsigned self, unless it was evaluated with the same bits both
    ways.
    """
    sound = table[table["activation_bits"].notna() & (table["mistake"] == "")]
    sound = sound.assign(
        method=[method(row) for row in rows_of(sound)],
        signed=[method(row._replace(unsigned=False)) for row in rows_of(sound)],
    )
    for signed, rows in sound.groupby("signed"):
        of_bits = rows.groupby(["weight_bits", "activation_bits"])["unsigned"].nunique()
        if rows["unsigned"].any() and of_bits.max() == 1:
            sound.loc[rows.index, "method"] = f"{signed}, {UNSIGNED} below 8 bits"
    fewer = sound[(sound["weight_bits"] < 8) | (sound["activation_bits"] < 8)]
    return sound[sound["method"].isin(fewer["method"])].drop(columns="signed")
