"""Part B of the report: the lab's questions on int8 in order, then what goes beyond them."""

from dataclasses import replace
from typing import Any

import pandas as pd

from scaling.config.scheme import STAGES
from scaling.core import numbers as fmt
from scaling.report.sections import quantization_others, quantization_variants
from scaling.report.sections.quantization_columns import (
    ACCURACY,
    AGREEMENT,
    DIFFERENCE,
    ERROR,
    by_group,
    mean,
    of_seed,
    over_seeds,
    share,
    spread,
)
from scaling.report.table import Column, SectionPart, Table, make_table
from scaling.tables.experiments.quantization_cost import (
    STANDARD_ERRORS,
    between,
    cost,
    difference,
)
from scaling.tables.schema import StudyTables

STAGE_WORDS = {
    "weights": "int8 weights",
    "weights+activations": "int8 weights and activations",
    "weights+activations+bias": "int8 weights and activations with int32 biases",
}
LATE_STAGES = [STAGES[3], STAGES[2]]
"""Where to look for statistics of quantized activations."""
INT32_MAX = 2**31 - 1


def part_b(tables: StudyTables) -> dict[str, Any]:
    """Make the part of each heading, and say how many test images there were, if any."""
    variants, layers = tables.quantization, tables.quantization_layers
    paired = tables.quantization_paired
    float32, weights, activations, biases = STAGES
    images = sorted(int(count) for count in variants["test_images"].dropna().unique())
    backends = tables.experiment("quantization_peers")
    parts: dict[str, SectionPart] = {
        "weights": _stage(variants, paired, weights, float32),
        "weight_layers": _weights(layers),
        "activation_layers": _activations(layers, variants),
        "activations": _stage(variants, paired, activations, weights),
        "biases": _stage(variants, paired, biases, activations),
        "accumulators": _accumulators(layers, variants),
        "mistakes": quantization_variants.known_mistakes(variants, layers, paired),
        "fewer_bits": quantization_variants.fewer_bits(variants),
        "choices": quantization_variants.at_8_bits(variants),
        "backends": quantization_others.reference_backends(backends),
        "resnet": quantization_others.resnet(tables.experiment("quantization_resnet")),
    }
    return {
        "parts": parts,
        "images": " or ".join(f"{count:,}" for count in images),
        "quantized": len(variants) > 0,
    }


def _stage(table: pd.DataFrame, paired: pd.DataFrame, name: str, before: str) -> SectionPart:
    """The stage `name` beside the one `before`: accuracy by seed, mean, difference, agreement.

    `paired` is quantization_paired.csv.
    """
    rows = table[table["stage"] == name]
    if rows.empty:
        return SectionPart(missing=f"The stage {name} was not evaluated in this study.")
    there = before if (table["stage"] == before).any() else "float32"
    sentences = [_against_float32(rows)]
    if there != "float32":
        sentences.append(_against_stage(table, paired, rows, before))
    shown = pd.concat([table[table["stage"] == there], rows])
    seeds = sorted(int(seed) for seed in shown["seed"].unique())
    means = (replace(ACCURACY, detail=spread), DIFFERENCE, ERROR, AGREEMENT)
    columns = [
        Column("stage", "stage", kind="head"),
        *(of_seed(seed) for seed in seeds),
        *(replace(column, group="mean over the seeds") for column in means),
    ]
    title = f"Accuracy with {STAGE_WORDS[name]}"
    return SectionPart(sentences, [make_table(title, by_group(shown, "stage"), columns)])


def _against_float32(rows: pd.DataFrame) -> str:
    found = cost(rows)
    seeds = f"mean of {fmt.plural(found.seeds, 'seed')}" if found.seeds > 1 else "one seed"
    by_seed = f"; {found.reach} by seed" if found.seeds > 1 else ""
    return (
        f"With {STAGE_WORDS[rows['stage'].iloc[0]]} test accuracy is "
        f"{found.accuracy_percent:.2f} %, in float32 {found.float32_percent:.2f} % ({seeds}): "
        f"{found.difference} points{by_seed}, {found.verdict}. {found.agreement_percent:.1f} % of "
        "the images keep their class."
    )


def _against_stage(
    table: pd.DataFrame, paired: pd.DataFrame, rows: pd.DataFrame, before: str
) -> str:
    earlier = table[table["stage"] == before].set_index("seed")["accuracy_percent"]
    changes = (rows.set_index("seed")["accuracy_percent"] - earlier).dropna()
    if changes.empty:
        return f"No seed has both this stage and {before}."
    found = between(paired, rows["stage"].iloc[0], before)
    how = "; these two stages are not paired image by image, so this change has no standard error."
    if found is not None:
        within = abs(found.errors) <= STANDARD_ERRORS
        verdict = (
            "within noise (two standard errors)" if within else "more than two standard errors"
        )
        how = f", paired image by image: {verdict}."
    error = float("nan") if found is None else found.standard_error_points
    return (
        f"Against {before}, the same networks one stage earlier, it changes by "
        f"{difference(changes.mean(), error)} points ({fmt.points(changes.min())} to "
        f"{fmt.points(changes.max())} by seed){how}"
    )


def _of_first(layers: pd.DataFrame, stages: list[str], column: str) -> pd.DataFrame:
    """The rows of the first of `stages` that has values in `column`."""
    known = layers[layers[column].notna()]
    for stage in stages:
        rows = known[known["stage"] == stage]
        if len(rows):
            return rows
    return known[:0]


def _missing(what: str) -> SectionPart:
    return SectionPart(
        missing=f"The records of this study hold no layer statistics for a stage with {what}."
    )


def _by_layer(title: str, rows: pd.DataFrame, columns: list[Column]) -> Table:
    """A line for each layer, over the seeds of one stage."""
    seeds = rows["seed"].nunique()
    over = f"mean over {seeds} seeds, smallest to largest below" if seeds > 1 else "one seed"
    title = f"{title}, stage {rows['stage'].iloc[0]} ({over})"
    columns = [Column("layer", "layer", kind="head"), *columns]
    return make_table(title, by_group(rows, "layer"), columns)


def _range(label: str, name: str) -> Column:
    """Show the widest extent of a layer over the seeds, from its two columns."""

    def extent(line: Any) -> str | None:
        low, high = line.rows[f"{name}_minimum"].min(), line.rows[f"{name}_maximum"].max()
        return None if pd.isna(low) else f"{fmt.significant(low)} to {fmt.significant(high)}"

    return Column(label, extent)


def _clipped(rows: pd.DataFrame, column: str, what: str) -> str:
    worst = rows.loc[rows[column].idxmax()]
    if worst[column] == 0:
        return "none is clipped"
    return f"at most {share(worst[column])} of the {what} of a layer are clipped ({worst['layer']})"


def _lowest(rows: pd.DataFrame, column: str) -> str:
    worst = rows.loc[rows[column].idxmin()]
    return f"{fmt.significant(worst[column])} dB ({worst['layer']}, seed {int(worst['seed'])})"


def _weights(layers: pd.DataFrame) -> SectionPart:
    """The largest weight of each layer, its scale, and the noise of rounding the weights."""
    rows = _of_first(layers, [STAGES[1], STAGES[3]], "weight_scale")
    if rows.empty:
        return _missing("quantized weights")
    amax = rows[["weight_minimum", "weight_maximum"]].abs().max(axis=1)
    widest, narrowest = rows.loc[amax.idxmax(), "layer"], rows.loc[amax.idxmin(), "layer"]
    sentence = (
        f"The weights of {widest} reach furthest, to ±{fmt.significant(amax.max())}, "
        f"those of {narrowest} least, to ±{fmt.significant(amax.min())}; "
        f"{_clipped(rows, 'weight_clipped_share', 'weights')}. The lowest SQNR of a layer’s "
        f"weights is {_lowest(rows, 'weight_sqnr_db')}."
    )
    return SectionPart([sentence], [_by_layer("Weights by layer", rows, WEIGHT_COLUMNS)])


WEIGHT_COLUMNS = [
    over_seeds("bits", "weight_bits", "{:.0f}".format),
    _range("range", "weight"),
    over_seeds("scale, steps per unit", "weight_scale"),
    over_seeds("clipped", "weight_clipped_share", share),
    over_seeds("SQNR, dB", "weight_sqnr_db"),
    mean("float32", "float32_bytes", fmt.data),
    mean("packed", "packed_bytes", fmt.data),
]


def _activations(layers: pd.DataFrame, variants: pd.DataFrame) -> SectionPart:
    """The ranges of each layer's outputs, their scales, what is clipped, and their noise."""
    rows = _of_first(layers, LATE_STAGES, "clipped_share_calibration")
    if rows.empty:
        return _missing("quantized activations")
    images = variants.loc[variants["stage"] == rows["stage"].iloc[0], "calibration_images"].dropna()
    counts = " or ".join(f"{int(count):,}" for count in sorted(images.unique()))
    sentence = (
        f"Ranges were found on {counts} training images. Of their activations "
        f"{_clipped(rows, 'clipped_share_calibration', 'values')}, of those of the test images "
        f"{_clipped(rows, 'clipped_share_test', 'values')}. The lowest SQNR of what a layer "
        f"passes on is {_lowest(rows, 'sqnr_after_relu_db')}."
    )
    # The images themselves have one scale, and no accumulator.
    rows = rows.assign(
        passed_scale=rows["output_scale"] * rows["accumulator_scale"].fillna(1.0),
        factor=rows["output_scale"].where(rows["accumulator_scale"].notna()),
    )
    return SectionPart([sentence], [_by_layer("Activations by layer", rows, ACTIVATION_COLUMNS)])


ACTIVATION_COLUMNS = [
    _range("range after ReLU", "output"),
    over_seeds("scale, steps per unit", "passed_scale"),
    over_seeds("factor o", "factor"),
    over_seeds("S · o · max", "top_step", "{:.3f}".format),
    over_seeds("clipped in calibration", "clipped_share_calibration", share),
    over_seeds("clipped in test", "clipped_share_test", share),
    over_seeds("SQNR before ReLU, dB", "sqnr_before_relu_db"),
    over_seeds("SQNR after ReLU, dB", "sqnr_after_relu_db"),
    over_seeds("propagated SQNR, dB", "propagated_sqnr_db"),
]


def _accumulators(layers: pd.DataFrame, variants: pd.DataFrame) -> SectionPart:
    """The worst cases of the int32 sums, and whether the simulation equals true integers."""
    compared = variants[variants["logits_compared"].notna()]
    sentences = [_bit_exactness(rows, str(biases)) for biases, rows in compared.groupby("bias")]
    rows = _of_first(layers, LATE_STAGES, "accumulator_bound")
    if rows.empty:
        return replace(_missing("integer accumulators"), sentences=sentences)
    largest = rows.loc[rows["accumulator_bound"].astype(float).idxmax()]
    bound = int(largest["accumulator_bound"])
    inexact = sorted(rows.loc[rows["float32_exact"].eq(False), "layer"].unique())
    sums = (
        f"Products and bias of {', '.join(inexact)} can add up to more than 2²⁴, where float32 "
        "stops holding every integer; the simulation is in float64."
        if inexact
        else "In every layer products and bias add up to at most 2²⁴ in any order, so float32 "
        "would hold each partial sum exactly."
    )
    sentences.append(
        f"No image can drive an accumulator beyond {bound:,} ({largest['layer']}), "
        f"{share(bound / INT32_MAX)} of what int32 holds. {sums}"
    )
    return SectionPart(sentences, [_by_layer("Accumulators by layer", rows, ACCUMULATOR_COLUMNS)])


ACCUMULATOR_COLUMNS = [
    over_seeds("input scale", "input_scale"),
    over_seeds("S, steps per unit", "accumulator_scale"),
    over_seeds("bias off b · S, steps", "bias_error_steps"),
    over_seeds("largest sum of products", "products_bound", "{:,.0f}".format),
    over_seeds("largest accumulator", "accumulator_bound", "{:,.0f}".format),
    Column(
        "sums exact in float32",
        lambda line: "yes" if line.rows["float32_exact"].eq(True).all() else "no",
        kind="text",
    ),
]


def _bit_exactness(rows: pd.DataFrame, biases: str) -> str:
    """On variants that all have int32 biases, or float ones."""
    compared, wrong = rows["logits_compared"].sum(), rows[rows["logits_differing"] > 0]
    how = {
        "int32": "with integers alone",
        "float": "with integer products, to which the float biases are added as in the simulation",
    }
    named = ", ".join(f"{row.stage} (seed {row.seed})" for row in wrong.itertuples())
    differing = f"{int(wrong['logits_differing'].sum()):,} differ: {named}"
    return (
        f"Each of {fmt.plural(len(rows), 'variant')} with quantized activations and {biases} "
        "biases (seeds counted apart) was computed twice on the test set, as a float simulation "
        f"and {how[biases]}: {int(compared):,} logits, of which "
        f"{'none differs' if wrong.empty else differing}."
    )
