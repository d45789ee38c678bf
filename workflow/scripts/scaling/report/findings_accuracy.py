"""Sentences on accuracy: large batches, one recipe against another, int8 quantization."""

from scaling.config.scheme import STAGES
from scaling.core import numbers as fmt
from scaling.report.finding import Finding, measured, source
from scaling.tables import large_batch, recipe_quality
from scaling.tables.experiments.quantization_cost import cost
from scaling.tables.schema import StudyTables


def large_batch_accuracy(tables: StudyTables) -> Finding:
    """The accuracy of the largest global batch against the reference cell."""
    lacking = "What a large batch costs in accuracy cannot be said: "
    if tables.timing.empty:
        return Finding(f"{lacking}the study has no cells.", "accuracy.csv", supported=False)
    cells = large_batch.compare(tables.timing, tables.accuracy)
    known = measured(cells, "difference")
    if known.empty:
        return Finding(
            f"{lacking}no cell has an accuracy beside that of its reference, a small batch on one "
            "GPU.",
            "accuracy.csv",
            supported=False,
        )
    largest = known[known["global_batch_size"] == known["global_batch_size"].max()]
    row = next(largest.sort_values("gpus", ascending=False).head(1).itertuples())
    same = (cells["recipe"] == row.recipe) & (cells["strategy"] == row.strategy)
    reference = next(cells[same & cells["reference"]].itertuples())
    share = getattr(row, row.difference_of), getattr(reference, row.difference_of)
    which = "test" if row.difference_of == "test_accuracy" else "training"
    verdict = {True: ", within the spread of the seeds", False: ""}.get(
        row.within_spread, "; with fewer than two seeds, its spread is unknown"
    )
    larger = cells[cells["global_batch_size"] > row.global_batch_size]["status"].value_counts()
    rest = ", ".join(f"{count} {status}" for status, count in larger.items())
    return Finding(
        f"At the largest global batch with an accuracy, {row.global_batch_size} "
        f"({fmt.cell_name(row)}), {which} accuracy is {100 * share[0]:.1f} %, against "
        f"{100 * share[1]:.1f} % at batch {int(reference.batch_size)} on one GPU: "
        f"{fmt.points(100 * row.difference)} points{verdict}."
        + (f" Of larger ones there is none to state: {rest}." if rest else ""),
        source("accuracy", row, reference),
    )


def recipes(tables: StudyTables) -> Finding:
    """The test accuracy of two recipes in the cell nearest to batch 128 on one GPU."""
    lacking = "Whether recipes train the same model to the same quality cannot be said: "
    pairs = recipe_quality.compare(tables.accuracy)
    if pairs.empty:
        reason = "no cell of the study was trained with two recipes."
        return Finding(lacking + reason, "accuracy.csv", supported=False)
    decided = pairs[pairs["verdict"] != recipe_quality.UNDECIDED]
    tested = decided[decided["quantity"] == "test_accuracy"]
    if tested.empty:
        untold = pairs[pairs["quantity"] == "test_accuracy"]
        reasons = "; ".join(untold["reason"].drop_duplicates())
        return Finding(f"{lacking}{reasons}.", "accuracy.csv", supported=False)
    tested = tested.assign(other=tested["batch_size"] != large_batch.REFERENCE_BATCH)
    row = next(tested.sort_values(["gpus", "other", "batch_size"], kind="stable").itertuples())
    low, high = 100 * row.low, 100 * row.high
    cell = f"{row.strategy}, {fmt.gpus(row.gpus)}, b\u00a0=\u00a0{row.batch_size}"
    verdict = (
        f"agrees within noise, which leaves room for up to {max(-low, high):.2f} points"
        if row.verdict == recipe_quality.AGREE
        else "differs by more than noise"
    )
    agreeing = (decided["verdict"] == recipe_quality.AGREE).sum()
    undecided = len(pairs) - len(decided)
    return Finding(
        f"After {row.first_epochs[0]} epochs, test accuracy of {row.first} and {row.second} "
        f"{verdict}: {100 * row.first_mean:.1f}\u00a0±\u00a0{100 * row.first_std:.1f} % over "
        f"{row.first_seeds} seeds against {100 * row.second_mean:.1f}\u00a0±\u00a0"
        f"{100 * row.second_std:.1f} % over {row.second_seeds}, a difference of "
        f"{fmt.points(100 * row.difference)} points (95 % interval {fmt.points(low)} to "
        f"{fmt.points(high)}; {cell}). The interval contains 0 in {agreeing} of "
        f"{fmt.plural(len(decided), 'comparison')} of training loss, training accuracy or test "
        "accuracy, over all cells that recipes share"
        + (f"; {undecided} more could not be decided." if undecided else "."),
        f"accuracy.csv: {row.first} and {row.second}, {cell}; all cells that recipes share",
    )


def quantization(tables: StudyTables) -> Finding:
    """What the last stage of quantization costs against float32."""
    table = tables.quantization
    stages = [stage for stage in STAGES[1:] if (table["stage"] == stage).any()]
    if not stages:
        return Finding(
            "What int8 costs in accuracy cannot be said: quantization.csv has no stage to compare "
            "with float32.",
            "quantization.csv",
            supported=False,
        )
    rows = table[table["stage"] == stages[-1]]
    found = cost(rows)
    over = (
        "with one seed"
        if found.seeds == 1
        else f"on average over {found.seeds} seeds ({found.reach} by seed)"
    )
    compared = rows["logits_compared"].sum()
    exact = (
        f" Of {int(compared):,} logits, {int(rows['logits_differing'].sum()):,} differ from those "
        "computed in integers alone."
        if compared
        else ""
    )
    return Finding(
        f"Int8 quantization ({stages[-1]}) changes test accuracy by {found.difference} points "
        f"{over}, {found.verdict}; {found.agreement_percent:.1f}\u00a0% of the images keep their "
        f"class.{exact}",
        f"quantization.csv: stage {stages[-1]}, all seeds",
    )
