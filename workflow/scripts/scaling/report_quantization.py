"""Part B of the report: accuracy after each stage of int8 quantization."""

from typing import Any

import pandas as pd

from scaling import report_format as fmt
from scaling.quantization_scheme import STAGES
from scaling.report_table import Entry, Table, head, status
from scaling.result_tables import StudyTables


def stages(tables: StudyTables) -> dict[str, Any]:
    """One row for each stage, one column for each seed, their mean, and the agreement."""
    table = tables.quantization[tables.quantization["stage"].isin(STAGES)]
    if table.empty:
        return {"tables": [], "images": ""}
    seeds = sorted(int(seed) for seed in table["seed"].unique())
    return {
        "tables": [
            Table(
                title="Accuracy on the test set, %, and difference to float32, points",
                groups=[("", 1), ("seed", len(seeds)), ("mean over the seeds", 3)],
                columns=[
                    "stage",
                    *(str(seed) for seed in seeds),
                    *("accuracy, %", "difference, points", "same class as float32, %"),
                ],
                rows=[
                    _row(str(stage), rows, seeds)
                    for stage, rows in table.groupby("stage", sort=False)
                ],
            )
        ],
        "images": " or ".join(f"{int(count):,}" for count in table["test_images"].unique()),
    }


def _row(stage: str, rows: pd.DataFrame, seeds: list[int]) -> list[Entry]:
    plain = stage == "float32"
    line = [head(stage)]
    for seed in seeds:
        found = rows[rows["seed"] == seed]
        if found.empty:
            line.append(status("missing"))
        else:
            values = found.iloc[0]
            difference = "" if plain else fmt.points(values["difference_points"])
            line.append(Entry(f"{values['accuracy_percent']:.2f}", detail=difference))
    accuracy, difference = rows["accuracy_percent"], rows["difference_points"]
    spread = f"{accuracy.min():.2f}–{accuracy.max():.2f}" if len(rows) > 1 else "one seed"
    line.append(Entry(f"{accuracy.mean():.2f}", detail=spread))
    if plain:
        return [*line, Entry("–"), Entry("–")]
    reach = f"{fmt.points(difference.min())} to {fmt.points(difference.max())}"
    noise = len(rows) > 1 and difference.min() <= 0 <= difference.max()
    return [
        *line,
        Entry(
            fmt.points(difference.mean()),
            detail=reach if len(rows) > 1 else "one seed",
            flags=("within noise",) if noise else (),
        ),
        Entry(f"{rows['agreement_percent'].mean():.1f}"),
    ]
