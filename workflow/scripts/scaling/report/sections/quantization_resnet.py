"""Part B on ResNet-18: the same stages of the network that the study scales."""

from typing import Any

import pandas as pd

from scaling.config.scheme import STAGES
from scaling.core import numbers as fmt
from scaling.report.sections.quantization_stages import COLUMNS, cost_entries
from scaling.report.table import SectionPart, Table, TableCell, head, text
from scaling.tables.experiments.quantization_cost import cost


def resnet(table: pd.DataFrame) -> SectionPart:
    """A row for each stage and kind of weight scales, and whether integers give the same logits."""
    quantized = table[table["stage"] != STAGES[0]]
    if quantized.empty:
        return SectionPart(missing="ResNet-18 was not taken through the stages in this study.")
    float32 = table[table["stage"] == STAGES[0]]
    rows = [_plain(float32)] if len(float32) else []
    rows += [_line(same) for _, same in quantized.groupby(["weight_scales", "stage"], sort=False)]
    shown = Table(
        title="ResNet-18 through the stages",
        columns=[
            *("stage", "weight scales", "accuracy, %", *COLUMNS[1:]),
            *("times smaller", "largest accumulator", "seeds"),
        ],
        rows=rows,
        text_columns=frozenset({"weight scales"}),
    )
    compared = quantized["logits"].sum()
    differing = quantized["differing_logits"].sum()
    sentence = (
        f"Of {int(compared):,} logits of the last stage that were computed in integers too, "
        f"{int(differing):,} differ from the simulation’s."
    )
    return SectionPart([sentence] if compared else [], [shown])


def _plain(rows: pd.DataFrame) -> list[TableCell]:
    accuracy = TableCell(f"{rows['accuracy_percent'].mean():.2f}")
    dashes = [TableCell("–")] * (len(COLUMNS) + 1)
    return [head(STAGES[0]), text("–"), accuracy, *dashes, TableCell(str(len(rows)))]


def _line(rows: pd.DataFrame) -> list[TableCell]:
    row: Any = next(rows.itertuples())
    found = cost(rows)
    bound = rows["accumulator_bound"].max()
    smaller = (rows["float32_bytes"] / rows["packed_bytes"].astype(float)).mean()
    return [
        head(row.stage),
        text(f"one per {row.weight_scales}"),
        TableCell(f"{found.accuracy_percent:.2f}"),
        *cost_entries(found),
        TableCell("–" if pd.isna(smaller) else fmt.times(smaller)),
        TableCell("–" if pd.isna(bound) else f"{int(bound):,}"),
        TableCell(str(found.seeds)),
    ]
