"""Part B beyond the study's own network: other engines' quantizers, and ResNet-18."""

from typing import Any

import pandas as pd

from scaling.config.scheme import STAGES
from scaling.core import numbers as fmt
from scaling.report.sections import quantization_columns as part_b
from scaling.report.table import Column, SectionPart, make_table
from scaling.tables.experiments.quantization_cost import difference

BATCHES = (1, 256)
OURS = "this study"


def reference_backends(table: pd.DataFrame) -> SectionPart:
    """A row per engine and precision over the seeds, and a sentence on every ratio of times."""
    if table.empty:
        return SectionPart(missing="Other quantizers were not measured in this study.")
    measured = table[table["status"] == "measured"]
    absent = table[table["status"] != "measured"].drop_duplicates(["engine", "note"])
    shown = make_table(
        "Other quantizers on the same weights and images",
        part_b.by_group(measured, "engine", "precision"),
        BACKEND_COLUMNS,
        notes=[f"{row.engine}: {row.status} ({row.note})" for row in absent.itertuples()],
    )
    timed = measured[measured["precision"] != "float32"].groupby("engine", sort=False)
    sentences = [
        _speed(str(engine), rows, batch)
        for engine, rows in timed
        for batch in BATCHES
        if rows[f"batch_{batch}_ratio"].notna().any()
    ]
    if not sentences:
        sentences = ["No int8 engine was timed beside its own float32, so none is called faster."]
    return SectionPart(sentences, [shown])


def _engine(line: Any) -> str:
    versions = ", ".join(dict.fromkeys(line.rows["version"]))
    ours = line.engine == OURS
    return f"{line.engine}, torch {versions}" if ours else f"{line.engine} {versions}"


def _difference(line: Any) -> str:
    errors = line.rows["standard_error_points"].astype(float)
    error = (errors**2).sum(skipna=False) ** 0.5 / len(line.rows)
    return difference(line.rows["difference_points"].mean(), error)


def _extent(rows: pd.DataFrame, batch: int) -> tuple[float, float, float]:
    """Median over the seeds of the ratio of times, its smallest and largest over all rounds."""
    name = f"batch_{batch}_ratio"
    return rows[name].median(), rows[f"{name}_min"].min(), rows[f"{name}_max"].max()


def _ratio(batch: int) -> Column:
    def is_base(line: Any) -> bool:
        """Whether it is the time that others are held against."""
        timed = line.rows[f"batch_{batch}_seconds"].notna().any()
        return bool(timed) and line.precision == "float32"

    def ratio(line: Any) -> str:
        median = _extent(line.rows, batch)[0]
        return "1" if is_base(line) else "–" if pd.isna(median) else f"{median:.2f}"

    def extent(line: Any) -> str:
        _, low, high = _extent(line.rows, batch)
        return "" if is_base(line) else "not timed" if pd.isna(low) else fmt.span(low, high)

    group = "time over the same engine’s float32"
    return Column(f"batch {batch}", ratio, detail=extent, group=group)


BACKEND_COLUMNS = [
    Column("engine", _engine, kind="head"),
    Column("precision", "precision", kind="text"),
    part_b.over_seeds("accuracy, %", "accuracy_percent", "{:.2f}".format),
    Column("difference to float32, points", _difference),
    part_b.over_seeds("same class as PyTorch’s float32, %", "agreement_percent", "{:.1f}".format),
    part_b.over_seeds("same class as our int8, %", "agreement_ours_percent", "{:.1f}".format),
    part_b.mean("file", "file_bytes", fmt.data),
    part_b.mean("times smaller", "times_smaller", fmt.times),
    *(_ratio(batch) for batch in BATCHES),
]


def _speed(engine: str, rows: pd.DataFrame, batch: int) -> str:
    ratio, low, high = _extent(rows, batch)
    verdict = "faster in some rounds and slower in others"
    if high < 1 or low > 1:
        verdict = "faster in every round" if high < 1 else "slower in every round"
    return (
        f"At batch {batch} {engine} in int8 takes {ratio:.2f} of the time of {engine} in float32 "
        f"({fmt.span(low, high)} over rounds and seeds), {verdict}."
    )


def resnet(table: pd.DataFrame) -> SectionPart:
    """A row for each stage and kind of weight scales, and whether integers give the same logits."""
    quantized = table[table["stage"] != STAGES[0]]
    if quantized.empty:
        return SectionPart(missing="ResNet-18 was not taken through the stages in this study.")
    ordered = pd.concat([table[table["stage"] == STAGES[0]], quantized])
    ordered["times_smaller"] = ordered["float32_bytes"] / ordered["packed_bytes"].astype(float)
    shown = make_table(
        "ResNet-18 through the stages",
        part_b.by_group(ordered, "weight_scales", "stage"),
        RESNET_COLUMNS,
    )
    compared, differing = quantized["logits"].sum(), quantized["differing_logits"].sum()
    sentence = (
        f"Of {int(compared):,} logits of the last stage that were computed in integers too, "
        f"{int(differing):,} differ from the simulation’s."
    )
    return SectionPart([sentence] if compared else [], [shown])


RESNET_COLUMNS = [
    Column("stage", "stage", kind="head"),
    Column(
        "weight scales",
        lambda line: None if line.stage == STAGES[0] else f"one per {line.weight_scales}",
        kind="text",
    ),
    *(part_b.ACCURACY, part_b.DIFFERENCE, part_b.ERROR, part_b.AGREEMENT),
    part_b.mean("times smaller", "times_smaller", fmt.times),
    Column(
        "largest accumulator", lambda line: line.rows["accumulator_bound"].max(), "{:,.0f}".format
    ),
    Column("seeds", lambda line: len(line.rows)),
]
