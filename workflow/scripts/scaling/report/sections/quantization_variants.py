"""Part B's other choices at 8 bits, and what fewer bits cost."""

from typing import Any

import pandas as pd

from scaling.config.scheme import STAGES
from scaling.core import numbers as fmt
from scaling.report.sections.ledger import decibels, over_seeds, share
from scaling.report.table import SectionPart, Table, TableCell, head, status
from scaling.tables.experiments import quantization_cost as choices
from scaling.tables.experiments.quantization_cost import Cost, cost


def at_8_bits(table: pd.DataFrame) -> SectionPart:
    """Every other sound variant of 8 bits beside the last stage."""
    eight = table[
        (table["weight_bits"] == 8)
        & (table["activation_bits"].isna() | (table["activation_bits"] == 8))
        & (table["mistake"] == "")
    ]
    names = [name for name in eight["stage"].unique() if name not in STAGES]
    if not names:
        return SectionPart(missing="This study has no other variants of 8 bits.")
    first = [STAGES[-1]] if (eight["stage"] == STAGES[-1]).any() else []
    shown = Table(
        title="Other choices at 8 bits",
        groups=[("", 4), ("lowest SQNR of a layer, dB", 3), ("", 2)],
        columns=[
            *("variant", "accuracy, %", "difference to float32, points"),
            *("same class as float32, %", "weights", "activations", "propagated"),
            *("most clipped, test", "times smaller"),
        ],
        rows=[_variant(eight[eight["stage"] == name]) for name in [*first, *names]],
        notes=[
            f"{name}: {choices.method(row)}"
            for name in names
            for row in eight[eight["stage"] == name].head(1).itertuples()
        ],
    )
    return SectionPart(_best(eight, names), [shown])


def _variant(rows: pd.DataFrame) -> list[TableCell]:
    row: Any = next(rows.itertuples())
    found = cost(rows)
    return [
        TableCell(row.stage, detail=fmt.plural(found.seeds, "seed"), kind="head"),
        TableCell(f"{found.accuracy_percent:.2f}"),
        _difference(found),
        TableCell(f"{found.agreement_percent:.1f}"),
        over_seeds(rows["weight_sqnr_db"], decibels),
        over_seeds(rows["sqnr_after_relu_db"], decibels),
        over_seeds(rows["propagated_sqnr_db"], decibels),
        TableCell(share(rows["clipped_share_test"].mean())),
        TableCell(fmt.times(rows["compression"].mean())),
    ]


def _difference(found: Cost) -> TableCell:
    """The mean with its standard error, its extent over the seeds below."""
    flags = ("within noise",) if found.within_noise else ()
    return TableCell(found.difference, detail=found.reach, flags=flags)


def _best(eight: pd.DataFrame, names: list[str]) -> list[str]:
    """The variant that agrees most with float32, beside the last stage on the same seeds."""
    last = eight[eight["stage"] == STAGES[-1]]
    others = eight[eight["stage"].isin(names) & eight["seed"].isin(last["seed"])]
    if others.empty:
        return []
    means = others.groupby("stage")["agreement_percent"].mean()
    best = str(means.idxmax())
    seeds = others.loc[others["stage"] == best, "seed"]
    reference = last.loc[last["seed"].isin(seeds), "agreement_percent"].mean()
    return [
        f"Of these {best} puts most images in the class that float32 puts them in: "
        f"{means.max():.1f} %, against {reference:.1f} % with {STAGES[-1]} on the same "
        f"{'seed' if len(seeds) == 1 else 'seeds'}."
    ]


def fewer_bits(table: pd.DataFrame) -> SectionPart:
    """Bits by method: the difference to float32 and the size."""
    low = choices.low_bits(table)
    if low.empty:
        return SectionPart(missing="No variant of this study has fewer than 8 bits.")
    methods = list(low["method"].unique())
    pairs = low[["weight_bits", "activation_bits"]].drop_duplicates()
    pairs = pairs.sort_values(["weight_bits", "activation_bits"], ascending=False)
    rows = []
    for pair in pairs.itertuples():
        same = low[
            (low["weight_bits"] == pair.weight_bits)
            & (low["activation_bits"] == pair.activation_bits)
        ]
        line = [head(choices.bits(pair))]
        for method in methods:
            own = same[same["method"] == method]
            line += _costs(own[own["stage"] == own["stage"].iloc[0]] if len(own) else own)
        rows.append(line)
    labels = ["points to float32", "packed"]
    shown = Table(
        title="Accuracy and size by bits",
        groups=[("", 1), *((method, len(labels)) for method in methods)],
        columns=["bits", *labels * len(methods)],
        rows=rows,
    )
    return SectionPart(_smallest(low, methods), [shown])


def _costs(rows: pd.DataFrame) -> list[TableCell]:
    if rows.empty:
        return [status("not evaluated", 2)]
    found = cost(rows)
    return [
        _difference(found),
        TableCell(
            fmt.data(rows["packed_bytes"].mean()), detail=fmt.times(rows["compression"].mean())
        ),
    ]


def _smallest(low: pd.DataFrame, methods: list[str]) -> list[str]:
    """For each method the smallest variant below 8 bits whose loss is within noise, if any."""
    sentences = []
    for method in methods:
        own = low[
            (low["method"] == method) & ((low["weight_bits"] < 8) | (low["activation_bits"] < 8))
        ]
        found: list[tuple[float, Any, Cost]] = []
        for _, rows in own.groupby("stage", sort=False):
            found.append((rows["packed_bytes"].mean(), next(rows.itertuples()), cost(rows)))
        within = [entry for entry in found if entry[2].within_noise]
        _, row, smallest = min(within or found, key=lambda entry: entry[0])
        said = (
            f"the smallest network below 8 bits within noise of float32 is {choices.bits(row)}"
            if within
            else "no network below 8 bits is within noise of float32; the smallest is "
            f"{choices.bits(row)}"
        )
        sentences.append(
            f"With {method} {said}: {smallest.difference} points "
            f"({fmt.plural(smallest.seeds, 'seed')}), {fmt.times(row.compression)} smaller."
        )
    return sentences
