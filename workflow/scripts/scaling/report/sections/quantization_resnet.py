"""Part B on ResNet-18: the same stages of the network that the study scales."""

from typing import Any

import pandas as pd

from scaling.config.scheme import STAGES
from scaling.core import numbers as fmt
from scaling.report.part import Part
from scaling.report.sections.quantization_stages import COLUMNS, cost_entries
from scaling.report.table import Entry, Table, head, text
from scaling.tables.experiments.quantization_cost import cost


def resnet(table: pd.DataFrame) -> Part:
    """A row for each stage and kind of weight scales, and whether integers give the same logits."""
    quantized = table[table["stage"] != STAGES[0]]
    if quantized.empty:
        return Part(lacking="ResNet-18 was not taken through the stages in this study.")
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
    return Part([sentence] if compared else [], [shown])


def _plain(rows: pd.DataFrame) -> list[Entry]:
    accuracy = Entry(f"{rows['accuracy_percent'].mean():.2f}")
    dashes = [Entry("–")] * (len(COLUMNS) + 1)
    return [head(STAGES[0]), text("–"), accuracy, *dashes, Entry(str(len(rows)))]


def _line(rows: pd.DataFrame) -> list[Entry]:
    row: Any = next(rows.itertuples())
    found = cost(rows)
    bound = rows["accumulator_bound"].max()
    smaller = (rows["float32_bytes"] / rows["packed_bytes"].astype(float)).mean()
    return [
        head(row.stage),
        text(f"one per {row.weight_scales}"),
        Entry(f"{found.accuracy_percent:.2f}"),
        *cost_entries(found),
        Entry("–" if pd.isna(smaller) else fmt.times(smaller)),
        Entry("–" if pd.isna(bound) else f"{int(bound):,}"),
        Entry(str(found.seeds)),
    ]
