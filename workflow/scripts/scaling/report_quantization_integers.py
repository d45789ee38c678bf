"""Part B's integers: accumulators of each layer, and whether the simulation equals them."""

import pandas as pd

from scaling import report_format as fmt
from scaling.report_ledger import NO_LEDGER, layer_table, mean_of, of_stage, share
from scaling.report_part import Part
from scaling.report_table import Entry, text

INT32_MAX = 2**31 - 1


def accumulators(layers: pd.DataFrame, variants: pd.DataFrame) -> Part:
    """The worst cases of the int32 sums, and whether the simulation equals true integers."""
    sentences = [_exactness(variants)] if variants["logits_compared"].notna().any() else []
    rows = of_stage(
        layers, ["weights+activations+bias", "weights+activations"], "accumulator_bound"
    )
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
    table = layer_table(
        "Accumulators by layer",
        rows,
        {
            "input scale": mean_of("input_scale", fmt.significant),
            "S, steps per unit": mean_of("accumulator_scale", fmt.significant),
            "bias off b · S, steps": mean_of("bias_error_steps", fmt.significant),
            "largest sum of products": mean_of("products_bound", lambda value: f"{value:,.0f}"),
            "largest accumulator": mean_of("accumulator_bound", lambda value: f"{value:,.0f}"),
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
