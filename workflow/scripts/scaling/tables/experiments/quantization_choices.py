"""Words for how a variant in quantization.csv was quantized, from its columns of options."""

from typing import Any

import pandas as pd

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
"""What there is to choose where activations stay floats."""


def words(row: Any) -> list[str]:
    """Where `row` differs from plain quantization, but for its bits and its mistake."""
    floats = pd.isna(row.activation_bits)
    found = [
        said
        for (column, value), said in WORDS.items()
        if getattr(row, column) == value and not (floats and column not in OF_WEIGHTS)
    ]
    both = ["weight ranges by MSE", "activation ranges by MSE"]
    if set(both) <= set(found):
        found[found.index(both[0])] = "ranges by MSE"
        found.remove(both[1])
    return found


def method(row: Any) -> str:
    """All of `words` in one text; plain quantization is by max-abs."""
    return ", ".join(words(row)) or PLAIN


def bits(row: Any) -> str:
    """`W4 A8`; activations that stay floats are `A32`."""
    activations = 32 if pd.isna(row.activation_bits) else int(row.activation_bits)
    return f"W{int(row.weight_bits)}\u00a0A{activations}"


def low_bits(table: pd.DataFrame) -> pd.DataFrame:
    """The sound integer variants by each method that has one below 8 bits, with `method`.

    A method's variants at 8 bits are among them: a curve starts there. Activations of 8 bits have a
    sign, so a method is one with its unsigned self, unless it was evaluated with the same bits both
    ways.
    """
    sound = table[table["activation_bits"].notna() & (table["mistake"] == "")]
    sound = sound.assign(
        method=[method(row) for row in sound.itertuples()],
        signed=[method(row._replace(unsigned=False)) for row in sound.itertuples()],
    )
    for signed, rows in sound.groupby("signed"):
        of_bits = rows.groupby(["weight_bits", "activation_bits"])["unsigned"].nunique()
        if rows["unsigned"].any() and of_bits.max() == 1:
            sound.loc[rows.index, "method"] = f"{signed}, {UNSIGNED} below 8 bits"
    fewer = sound[(sound["weight_bits"] < 8) | (sound["activation_bits"] < 8)]
    return sound[sound["method"].isin(fewer["method"])].drop(columns="signed")
