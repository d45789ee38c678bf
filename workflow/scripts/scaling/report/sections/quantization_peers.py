"""Part B's other quantizers: accuracy, size and time beside this study's, each engine by itself."""

from typing import Any

import pandas as pd

from scaling.core import numbers as fmt
from scaling.report.sections.ledger import over_seeds
from scaling.report.table import SectionPart, Table, TableCell, head, text
from scaling.tables.experiments.quantization_cost import difference

BATCHES = (1, 256)
OURS = "this study"


def peers(table: pd.DataFrame) -> SectionPart:
    """A row per engine and precision over the seeds, and a sentence on every ratio of times."""
    if table.empty:
        return SectionPart(missing="Other quantizers were not measured in this study.")
    measured = table[table["status"] == "measured"]
    absent = table[table["status"] != "measured"].drop_duplicates(["engine", "note"])
    notes = [f"{row.engine}: {row.status} ({row.note})" for row in absent.itertuples()]
    shown = Table(
        title="Other quantizers on the same weights and images",
        groups=[("", 8), ("time over the same engine’s float32", len(BATCHES))],
        columns=[
            *("engine", "precision", "accuracy, %", "difference to float32, points"),
            *("same class as PyTorch’s float32, %", "same class as our int8, %", "file"),
            *("times smaller", *(f"batch {batch}" for batch in BATCHES)),
        ],
        rows=[
            _line(str(engine), str(precision), rows)
            for (engine, precision), rows in measured.groupby(["engine", "precision"], sort=False)
        ],
        notes=notes,
        text_columns=frozenset({"precision"}),
    )
    timed = measured[measured["precision"] != "float32"].groupby("engine", sort=False)
    sentences = [
        sentence
        for engine, rows in timed
        for batch in BATCHES
        if (sentence := _speed(str(engine), rows, batch))
    ]
    if not sentences:
        sentences = ["No int8 engine was timed beside its own float32, so none is called faster."]
    return SectionPart(sentences, [shown])


def _line(engine: str, precision: str, rows: pd.DataFrame) -> list[TableCell]:
    versions = ("torch " if engine == OURS else "") + ", ".join(dict.fromkeys(rows["version"]))
    plain = precision == "float32"
    return [
        head(f"{engine}, {versions}" if engine == OURS else f"{engine} {versions}"),
        text(precision),
        over_seeds(rows["accuracy_percent"], lambda value: f"{value:.2f}"),
        *_difference(rows),
        over_seeds(rows["agreement_percent"], lambda value: f"{value:.1f}"),
        over_seeds(rows["agreement_ours_percent"], lambda value: f"{value:.1f}"),
        TableCell(fmt.data(rows["file_bytes"].mean())),
        TableCell(fmt.times(rows["times_smaller"].mean())),
        *(
            TableCell("1") if plain and _timed(rows, batch) else _ratio(rows, batch)
            for batch in BATCHES
        ),
    ]


def _difference(rows: pd.DataFrame) -> list[TableCell]:
    error = (rows["standard_error_points"].astype(float) ** 2).sum(skipna=False) ** 0.5 / len(rows)
    return [TableCell(difference(rows["difference_points"].mean(), error))]


def _timed(rows: pd.DataFrame, batch: int) -> bool:
    return bool(rows[f"batch_{batch}_seconds"].notna().any())


def _extent(rows: pd.DataFrame, batch: int) -> tuple[float, float, float] | None:
    """Median over the seeds of the ratio of times, its smallest and largest over all rounds."""
    name = f"batch_{batch}_ratio"
    if rows[name].isna().all():
        return None
    return rows[name].median(), rows[f"{name}_min"].min(), rows[f"{name}_max"].max()


def _ratio(rows: pd.DataFrame, batch: int) -> TableCell:
    found = _extent(rows, batch)
    if found is None:
        return TableCell("–", detail="not timed")
    return TableCell(f"{found[0]:.2f}", detail=fmt.span(found[1], found[2]))


def _speed(engine: str, rows: pd.DataFrame, batch: int) -> str:
    found: Any = _extent(rows, batch)
    if found is None:
        return ""
    ratio, low, high = found
    verdict = (
        "faster in every round"
        if high < 1
        else "slower in every round"
        if low > 1
        else "faster in some rounds and slower in others"
    )
    return (
        f"At batch {batch} {engine} in int8 takes {ratio:.2f} of the time of {engine} in float32 "
        f"({fmt.span(low, high)} over rounds and seeds), {verdict}."
    )
