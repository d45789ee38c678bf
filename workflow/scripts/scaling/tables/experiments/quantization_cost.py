"""What a quantized variant costs in accuracy, over the seeds it was made for."""

import math
from dataclasses import dataclass

import pandas as pd

from scaling.core import numbers as fmt
from scaling.quantization.predicted_classes import MeanDifference

STANDARD_ERRORS = 2.0
"""A mean difference of no more than this many standard errors is called within noise."""


@dataclass(frozen=True)
class Cost:
    """Means over `seeds`, accuracies in % and differences to float32 in points, with their extent.

    `standard_error_points` is that of the mean difference, image by image over the seeds (see
    `predicted_classes.mean_difference`). Where the table has it for other seeds than these, it is
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

    @property
    def verdict(self) -> str:
        """Words on the mean difference."""
        return {
            True: "within noise (two standard errors)",
            False: "more than two standard errors",
            None: "with no standard error in this study’s records",
        }[self.within_noise]


def cost(rows: pd.DataFrame) -> Cost:
    """Of one variant's rows in quantization.csv, one for each seed and at least one.

    Rows of quantization_resnet.csv, which has no errors of means, will do.
    """
    accuracies, differences = rows["accuracy_percent"], rows["difference_points"]
    return Cost(
        seeds=len(rows),
        float32_percent=float((accuracies - differences).mean()),
        accuracy_percent=float(accuracies.mean()),
        accuracy_range=(float(accuracies.min()), float(accuracies.max())),
        difference_points=float(differences.mean()),
        difference_range=(float(differences.min()), float(differences.max())),
        standard_error_points=_error(rows),
        agreement_percent=float(rows["agreement_percent"].mean()),
    )


def _error(rows: pd.DataFrame) -> float:
    if "mean_seeds" in rows and rows["mean_seeds"].astype(float).eq(len(rows)).all():
        return float(rows["mean_standard_error_points"].iloc[0])
    errors = rows["standard_error_points"].astype(float)
    return math.sqrt(float(errors.pow(2).sum(skipna=False))) / len(rows)


def between(paired: pd.DataFrame, stage: str, reference: str) -> MeanDifference | None:
    """`stage` minus `reference` from quantization_paired.csv, where their images were compared."""
    rows = paired[(paired["stage"] == stage) & (paired["reference_stage"] == reference)]
    for row in rows.itertuples():
        return MeanDifference(row.difference_points, row.standard_error_points)
    return None


def difference(points: float, standard_error: float) -> str:
    """A difference in points with its standard error, where that is known."""
    known = "" if pd.isna(standard_error) else f" ± {standard_error:.2f}"
    return fmt.points(points) + known
