"""Sentences on accuracy: large batches, int8 quantization."""

from scaling import large_batch
from scaling import report_format as fmt
from scaling.finding import Finding, measured, source
from scaling.result_tables import StudyTables


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


def quantization(tables: StudyTables) -> Finding:
    """What the last stage of quantization costs against float32."""
    table = tables.quantization
    stages = [stage for stage in table["stage"].unique() if stage != "float32"]
    if not stages:
        return Finding(
            "What int8 costs in accuracy cannot be said: quantization.csv has no stage to compare "
            "with float32.",
            "quantization.csv",
            supported=False,
        )
    rows = table[table["stage"] == stages[-1]]
    differences = rows["difference_points"]
    sentence = (
        f"Int8 quantization ({stages[-1]}) changes test accuracy by "
        f"{fmt.points(differences.mean())} points"
    )
    if len(rows) == 1:
        sentence += " with one seed, so its spread is unknown."
    else:
        sentence += (
            f" on average over {len(rows)} seeds ({fmt.points(differences.min())} to "
            f"{fmt.points(differences.max())})"
        )
        noisy = differences.min() <= 0 <= differences.max()
        sentence += ", which is within noise." if noisy else "."
    return Finding(sentence, f"quantization.csv: stage {stages[-1]}, all seeds")
