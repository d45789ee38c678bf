"""Part B's ledger: weights, activations and accumulators of each layer, over all seeds."""

from collections.abc import Callable
from typing import Any

import pandas as pd

from scaling import report_format as fmt
from scaling.report_part import Part
from scaling.report_table import Entry, Table, head, text

INT32_MAX = 2**31 - 1
NO_LEDGER = "The records of this study hold no ledger of layers for a stage with "


def share(value: float) -> str:
    """A share that may be tiny: `0 %`, `< 0.001 %`, `0.0023 %`."""
    if pd.isna(value) or value == 0:
        return "–" if pd.isna(value) else "0 %"
    return "< 0.001 %" if value < 1e-5 else f"{fmt.significant(100 * value, 2)} %"


def decibels(value: float) -> str:
    """`37.4`."""
    return fmt.significant(value)


def over_seeds(values: pd.Series, write: Callable[[float], str]) -> Entry:
    """The mean of `values`, smallest and largest below it where they differ as written."""
    known = values.dropna().astype(float)
    if known.empty:
        return Entry("–")
    low, high = write(known.min()), write(known.max())
    return Entry(write(known.mean()), detail="" if low == high else f"{low} to {high}")


def _range(rows: pd.DataFrame, name: str) -> Entry:
    low, high = rows[f"{name}_minimum"].min(), rows[f"{name}_maximum"].max()
    return Entry("–" if pd.isna(low) else f"{fmt.significant(low)} to {fmt.significant(high)}")


def _of(layers: pd.DataFrame, stages: list[str], column: str) -> pd.DataFrame:
    """The rows of the first of `stages` that has values in `column`."""
    for stage in stages:
        rows = layers[(layers["stage"] == stage) & layers[column].notna()]
        if len(rows):
            return rows
    return layers[:0]


def _table(
    title: str, rows: pd.DataFrame, columns: dict[str, Callable[[pd.DataFrame], Entry]]
) -> Table:
    """A line for each layer; `columns` makes each entry from the layer's rows, one per seed."""
    seeds = rows["seed"].nunique()
    over = f"mean over {seeds} seeds, smallest to largest below" if seeds > 1 else "one seed"
    return Table(
        title=f"{title}, stage {rows['stage'].iloc[0]} ({over})",
        columns=["layer", *columns],
        rows=[
            [head(str(layer)), *(entry(some) for entry in columns.values())]
            for layer, some in rows.groupby("layer", sort=False)
        ],
    )


def _mean(column: str, write: Callable[[float], str]) -> Callable[[pd.DataFrame], Entry]:
    return lambda rows: over_seeds(rows[column], write)


def weights(layers: pd.DataFrame) -> Part:
    """How far the weights of each layer reach, their scale, and the noise of rounding them."""
    rows = _of(layers, ["weights", "weights+activations+bias"], "weight_scale")
    if rows.empty:
        return Part(lacking=f"{NO_LEDGER}quantized weights.")
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
    table = _table(
        "Weights by layer",
        rows,
        {
            "bits": _mean("weight_bits", lambda value: f"{value:.0f}"),
            "range": lambda some: _range(some, "weight"),
            "scale, steps per unit": _mean("weight_scale", fmt.significant),
            "clipped": _mean("weight_clipped_share", share),
            "SQNR, dB": _mean("weight_sqnr_db", decibels),
            "float32": lambda some: Entry(fmt.data(some["float32_bytes"].iloc[0])),
            "packed": lambda some: Entry(fmt.data(some["packed_bytes"].mean())),
        },
    )
    return Part([sentence], [table])


def activations(layers: pd.DataFrame, variants: pd.DataFrame) -> Part:
    """How far each layer's outputs reach, their scales, what is clipped, and their noise."""
    stages = ["weights+activations+bias", "weights+activations"]
    known = _of(layers, stages, "clipped_share_calibration")
    if known.empty:
        return Part(lacking=f"{NO_LEDGER}quantized activations.")
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
    table = _table(
        "Activations by layer",
        known.assign(passed_scale=factor),
        {
            "range after ReLU": lambda some: _range(some, "output"),
            "scale, steps per unit": _mean("passed_scale", fmt.significant),
            "output_scale o": lambda some: (
                Entry("–") if some["accumulator_scale"].isna().all() else _factor(some)
            ),
            "S · o · max": _mean("top_step", lambda value: f"{value:.3f}"),
            "clipped, calibration": _mean("clipped_share_calibration", share),
            "clipped, test": _mean("clipped_share_test", share),
            "SQNR before ReLU, dB": _mean("sqnr_before_relu_db", decibels),
            "SQNR after ReLU, dB": _mean("sqnr_after_relu_db", decibels),
            "SQNR propagated, dB": _mean("propagated_sqnr_db", decibels),
        },
    )
    return Part([sentence], [table])


def _factor(some: pd.DataFrame) -> Entry:
    return over_seeds(some["output_scale"], fmt.significant)


def accumulators(layers: pd.DataFrame, variants: pd.DataFrame) -> Part:
    """The worst cases of the int32 sums, and whether the simulation equals true integers."""
    sentences = [_exactness(variants)] if variants["logits_compared"].notna().any() else []
    rows = _of(layers, ["weights+activations+bias", "weights+activations"], "accumulator_bound")
    if rows.empty:
        return Part(sentences, lacking=f"{NO_LEDGER}integer accumulators.")
    largest = rows.loc[rows["accumulator_bound"].astype(float).idxmax()]
    bound = int(largest["accumulator_bound"])
    inexact = sorted(rows.loc[rows["float32_exact"].eq(False), "layer"].unique())
    sentences.append(
        f"No image can drive an accumulator beyond {bound:,} ({largest['layer']}), "
        f"{share(bound / INT32_MAX)} of what int32 holds. "
        + (
            f"The products of {', '.join(inexact)} can add up to more than 2²⁴, where float32 "
            "stops holding every integer; the simulation is in float64."
            if inexact
            else "In every layer the products add up to at most 2²⁴ in any order, so float32 would "
            "hold each partial sum exactly."
        )
    )
    table = _table(
        "Accumulators by layer",
        rows,
        {
            "input scale": _mean("input_scale", fmt.significant),
            "S, steps per unit": _mean("accumulator_scale", fmt.significant),
            "bias off b · S, steps": _mean("bias_error_steps", fmt.significant),
            "largest sum of products": _mean("products_bound", lambda value: f"{value:,.0f}"),
            "largest accumulator": _mean("accumulator_bound", lambda value: f"{value:,.0f}"),
            "float32 is exact": _exact,
        },
    )
    return Part(sentences, [table])


def _exact(some: pd.DataFrame) -> Entry:
    return text("yes" if some["float32_exact"].eq(True).all() else "no")


def _exactness(variants: pd.DataFrame) -> str:
    rows = variants[variants["logits_compared"].notna()]
    compared, wrong = rows["logits_compared"].sum(), rows[rows["logits_differing"] > 0]
    words = (
        f"Each of {fmt.plural(len(rows), 'variant')} with quantized activations (seeds counted "
        f"apart) was computed twice on the test set, as a float simulation and with integers "
        f"alone: {int(compared):,} logits, of which "
    )
    if wrong.empty:
        return f"{words}none differs."
    named = ", ".join(f"{row.stage} (seed {row.seed})" for row in wrong.itertuples())
    return f"{words}{int(wrong['logits_differing'].sum()):,} differ: {named}."


def _clipped(rows: pd.DataFrame, column: str, what: str) -> str:
    worst: Any = rows.loc[rows[column].idxmax()]
    if worst[column] == 0:
        return "none is clipped"
    return f"at most {share(worst[column])} of the {what} of a layer are clipped ({worst['layer']})"
