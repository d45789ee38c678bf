"""Part B's questions on accuracy: the stages of quantization, each beside the one before."""

import pandas as pd

from scaling.core import numbers as fmt
from scaling.report.table import SectionPart, Table, TableCell, head, status
from scaling.tables.experiments.quantization_cost import (
    STANDARD_ERRORS,
    Cost,
    between,
    cost,
    difference,
)

STAGE_WORDS = {
    "weights": "int8 weights",
    "weights+activations": "int8 weights and activations",
    "weights+activations+bias": "int8 weights and activations with int32 biases",
}
COLUMNS = [
    *("accuracy, %", "difference to float32, points", "standard error, points"),
    "same class as float32, %",
]


def stage(table: pd.DataFrame, paired: pd.DataFrame, name: str, before: str) -> SectionPart:
    """The stage `name` beside the one `before`: accuracy by seed, mean, difference, agreement.

    `paired` is quantization_paired.csv.
    """
    rows = table[table["stage"] == name]
    if rows.empty:
        return SectionPart(missing=f"The stage {name} was not evaluated in this study.")
    found = cost(rows)
    there = before if (table["stage"] == before).any() else "float32"
    sentences = [_against_float32(name, found)]
    if there != "float32":
        sentences.append(_against_stage(table, paired, rows, before))
    title = f"Accuracy with {STAGE_WORDS[name]}"
    return SectionPart(sentences, [accuracies(title, table, [there, name])])


def _against_float32(name: str, found: Cost) -> str:
    seeds = "mean of " + fmt.plural(found.seeds, "seed") if found.seeds > 1 else "one seed"
    by_seed = f"; {found.reach} by seed" if found.seeds > 1 else ""
    return (
        f"With {STAGE_WORDS[name]} test accuracy is {found.accuracy_percent:.2f} %, in float32 "
        f"{found.float32_percent:.2f} % ({seeds}): {found.difference} points{by_seed}, "
        f"{found.verdict}. {found.agreement_percent:.1f} % of the images keep their class."
    )


def _against_stage(
    table: pd.DataFrame, paired: pd.DataFrame, rows: pd.DataFrame, before: str
) -> str:
    earlier = table[table["stage"] == before].set_index("seed")["accuracy_percent"]
    changes = (rows.set_index("seed")["accuracy_percent"] - earlier).dropna()
    if changes.empty:
        return f"No seed has both this stage and {before}."
    found = between(paired, rows["stage"].iloc[0], before)
    how = (
        "; these two stages are not paired image by image, so this change has no standard error."
        if found is None
        else f", paired image by image: {_verdict(found.errors)}."
    )
    error = float("nan") if found is None else found.standard_error_points
    return (
        f"Against {before}, the same networks one stage earlier, it changes by "
        f"{difference(changes.mean(), error)} points ({fmt.points(changes.min())} to "
        f"{fmt.points(changes.max())} by seed){how}"
    )


def _verdict(errors: float) -> str:
    within = abs(errors) <= STANDARD_ERRORS
    return "within noise (two standard errors)" if within else "more than two standard errors"


def accuracies(title: str, table: pd.DataFrame, names: list[str]) -> Table:
    """A row for each variant of `names` there is, a column for each seed, and what `Cost` says."""
    shown = table[table["stage"].isin(names)]
    names = [name for name in names if (shown["stage"] == name).any()]
    seeds = sorted(int(seed) for seed in shown["seed"].unique())
    return Table(
        title=title,
        groups=[("", 1), ("seed", len(seeds)), ("mean over the seeds", len(COLUMNS))],
        columns=["stage", *(str(seed) for seed in seeds), *COLUMNS],
        rows=[_line(name, shown[shown["stage"] == name], seeds) for name in names],
    )


def _line(name: str, rows: pd.DataFrame, seeds: list[int]) -> list[TableCell]:
    plain = name == "float32"
    by_seed = {int(row.seed): row for row in rows.itertuples()}
    line = [head(name)]
    for seed in seeds:
        row = by_seed.get(seed)
        if row is None:
            line.append(status("not evaluated"))
        else:
            detail = "" if plain else difference(row.difference_points, row.standard_error_points)
            line.append(TableCell(f"{row.accuracy_percent:.2f}", detail=detail))
    found = cost(rows)
    low, high = found.accuracy_range
    spread = f"{low:.2f}–{high:.2f}" if len(rows) > 1 else "one seed"
    line.append(TableCell(f"{found.accuracy_percent:.2f}", detail=spread))
    return [*line, *([TableCell("–")] * 3 if plain else cost_entries(found))]


def cost_entries(found: Cost) -> list[TableCell]:
    """The mean difference with its extent, its standard error, and the agreement."""
    error = found.standard_error_points
    return [
        TableCell(
            fmt.points(found.difference_points),
            detail=found.reach,
            flags=("within noise",) if found.within_noise else (),
        ),
        TableCell("–" if found.within_noise is None else f"{error:.2f}"),
        TableCell(f"{found.agreement_percent:.1f}"),
    ]
