"""Part B's ledger: weights and activations of each layer, over all seeds."""

from typing import Any

import pandas as pd

from scaling.core import numbers as fmt
from scaling.report.sections.ledger import (
    NO_LEDGER,
    decibels,
    layer_table,
    mean_of,
    of_stage,
    over_seeds,
    range_of,
    share,
)
from scaling.report.table import SectionPart, TableCell


def weights(layers: pd.DataFrame) -> SectionPart:
    """How far the weights of each layer reach, their scale, and the noise of rounding them."""
    rows = of_stage(layers, ["weights", "weights+activations+bias"], "weight_scale")
    if rows.empty:
        return SectionPart(missing=f"{NO_LEDGER}quantized weights.")
    worst = rows.loc[rows["weight_sqnr_db"].idxmin()]
    reach = rows[["weight_minimum", "weight_maximum"]].abs().max(axis=1)
    widest, narrowest = rows.loc[reach.idxmax()], rows.loc[reach.idxmin()]
    sentence = (
        f"The weights of {widest['layer']} reach furthest, to ±{fmt.significant(reach.max())}, "
        f"those of {narrowest['layer']} least, to ±{fmt.significant(reach.min())}; "
        f"{_clipped(rows, 'weight_clipped_share', 'weights')}. The lowest SQNR of a layer’s "
        f"weights is {decibels(worst['weight_sqnr_db'])} dB ({worst['layer']}, seed "
        f"{int(worst['seed'])})."
    )
    table = layer_table(
        "Weights by layer",
        rows,
        {
            "bits": mean_of("weight_bits", lambda value: f"{value:.0f}"),
            "range": lambda some: range_of(some, "weight"),
            "scale, steps per unit": mean_of("weight_scale", fmt.significant),
            "clipped": mean_of("weight_clipped_share", share),
            "SQNR, dB": mean_of("weight_sqnr_db", decibels),
            "float32": lambda some: TableCell(fmt.data(some["float32_bytes"].iloc[0])),
            "packed": lambda some: TableCell(fmt.data(some["packed_bytes"].mean())),
        },
    )
    return SectionPart([sentence], [table])


def activations(layers: pd.DataFrame, variants: pd.DataFrame) -> SectionPart:
    """How far each layer's outputs reach, their scales, what is clipped, and their noise."""
    stages = ["weights+activations+bias", "weights+activations"]
    known = of_stage(layers, stages, "clipped_share_calibration")
    if known.empty:
        return SectionPart(missing=f"{NO_LEDGER}quantized activations.")
    found = known["stage"].iloc[0]
    images = variants.loc[variants["stage"] == found, "calibration_images"].dropna()
    counts = " or ".join(f"{int(count):,}" for count in sorted(images.unique()))
    worst = known.loc[known["sqnr_after_relu_db"].idxmin()]
    factor = known["output_scale"] * known["accumulator_scale"].fillna(1.0)
    sentence = (
        f"Ranges were found on {counts} training images. Of their activations "
        f"{_clipped(known, 'clipped_share_calibration', 'values')}, of those of the test images "
        f"{_clipped(known, 'clipped_share_test', 'values')}. The lowest SQNR of what a layer "
        f"passes on is {decibels(worst['sqnr_after_relu_db'])} dB ({worst['layer']}, seed "
        f"{int(worst['seed'])})."
    )
    table = layer_table(
        "Activations by layer",
        known.assign(passed_scale=factor),
        {
            "range after ReLU": lambda some: range_of(some, "output"),
            "scale, steps per unit": mean_of("passed_scale", fmt.significant),
            "factor o": lambda some: (
                TableCell("–") if some["accumulator_scale"].isna().all() else _factor(some)
            ),
            "S · o · max": mean_of("top_step", lambda value: f"{value:.3f}"),
            "clipped in calibration": mean_of("clipped_share_calibration", share),
            "clipped in test": mean_of("clipped_share_test", share),
            "SQNR before ReLU, dB": mean_of("sqnr_before_relu_db", decibels),
            "SQNR after ReLU, dB": mean_of("sqnr_after_relu_db", decibels),
            "propagated SQNR, dB": mean_of("propagated_sqnr_db", decibels),
        },
    )
    return SectionPart([sentence], [table])


def _factor(some: pd.DataFrame) -> TableCell:
    return over_seeds(some["output_scale"], fmt.significant)


def _clipped(rows: pd.DataFrame, column: str, what: str) -> str:
    worst: Any = rows.loc[rows[column].idxmax()]
    if worst[column] == 0:
        return "none is clipped"
    return f"at most {share(worst[column])} of the {what} of a layer are clipped ({worst['layer']})"
