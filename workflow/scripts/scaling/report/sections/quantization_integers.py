"""Part B's integers: accumulators of each layer, and whether the simulation equals them."""

import pandas as pd

from scaling.core import numbers as fmt
from scaling.report.sections.ledger import NO_LEDGER, layer_table, mean_of, of_stage, share
from scaling.report.table import SectionPart, TableCell, text

INT32_MAX = 2**31 - 1


def accumulators(layers: pd.DataFrame, variants: pd.DataFrame) -> SectionPart:
    """The worst cases of the int32 sums, and whether the simulation equals true integers."""
    compared = variants[variants["logits_compared"].notna()]
    sentences = [_exactness(rows, str(biases)) for biases, rows in compared.groupby("bias")]
    rows = of_stage(
        layers, ["weights+activations+bias", "weights+activations"], "accumulator_bound"
    )
    if rows.empty:
        return SectionPart(sentences, missing=f"{NO_LEDGER}integer accumulators.")
    largest = rows.loc[rows["accumulator_bound"].astype(float).idxmax()]
    bound = int(largest["accumulator_bound"])
    inexact = sorted(rows.loc[rows["float32_exact"].eq(False), "layer"].unique())
    sentences.append(
        f"No image can drive an accumulator beyond {bound:,} ({largest['layer']}), "
        f"{share(bound / INT32_MAX)} of what int32 holds. "
        + (
            f"Products and bias of {', '.join(inexact)} can add up to more than 2²⁴, where float32 "
            "stops holding every integer; the simulation is in float64."
            if inexact
            else "In every layer products and bias add up to at most 2²⁴ in any order, so float32 "
            "would hold each partial sum exactly."
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
            "sums exact in float32": _exact,
        },
    )
    return SectionPart(sentences, [table])


def _exact(some: pd.DataFrame) -> TableCell:
    return text("yes" if some["float32_exact"].eq(True).all() else "no")


def _exactness(rows: pd.DataFrame, biases: str) -> str:
    """On variants that all have int32 biases, or float ones."""
    compared, wrong = rows["logits_compared"].sum(), rows[rows["logits_differing"] > 0]
    how = {
        "int32": "with integers alone",
        "float": "with integer products, to which the float biases are added as in the simulation",
    }
    words = (
        f"Each of {fmt.plural(len(rows), 'variant')} with quantized activations and {biases} "
        "biases (seeds counted apart) was computed twice on the test set, as a float simulation "
        f"and {how[biases]}: {int(compared):,} logits, of which "
    )
    if wrong.empty:
        return f"{words}none differs."
    named = ", ".join(f"{row.stage} (seed {row.seed})" for row in wrong.itertuples())
    return f"{words}{int(wrong['logits_differing'].sum()):,} differ: {named}."
