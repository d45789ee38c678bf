"""Published studies: the times and the derived figures that someone printed, as data."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from scaling.core.errors import UserError
from scaling.core.grid import CELL_KEYS
from scaling.published.rows import Accuracy, Quantization, Row, Sweep, Timing, read_rows
from scaling.tables import schema
from scaling.tables.timing import TIMED

CIFAR10_TRAIN_IMAGES = 50_000
BYTES_PER_PARAMETER = 4
"""Gradients are taken as float32, which every study of this lab used."""

PRINTED = {
    "speedup": "printed_speedup",
    "compute_seconds": "printed_compute_seconds",
    "communication_seconds": "printed_communication_seconds",
    "bandwidth_gb_per_s": "printed_bandwidth_gb_per_s",
    "utilization_percent": "printed_utilization_percent",
}
"""Every derived figure a document may print, and its column."""
BESIDE: dict[str, tuple[str, type[Row]]] = {
    "sweep": ("batch_sweep.csv", Sweep),
    "accuracy": ("accuracy.csv", Accuracy),
    "quantization": ("quantization.csv", Quantization),
}
"""What may lie beside timings.csv."""


@dataclass(frozen=True)
class Description:
    """What the tables of a study cannot say, in words."""

    title: str = ""
    hardware: str = "not stated"
    units: str = "not stated"
    doubts: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class PublishedStudy:
    """One study as it was printed.

    `rows` has the fields of `Timing`, printed figures as Decimal with the digits they were printed
    with (None: not printed); `sweep` more single-GPU times, which may repeat a cell of `rows`;
    `accuracy` and `quantization` the fields of their models.
    """

    name: str
    description: Description
    rows: pd.DataFrame
    sweep: pd.DataFrame
    accuracy: pd.DataFrame
    quantization: pd.DataFrame

    @property
    def model(self) -> str:
        return str(self.rows["model"].iloc[0])

    @property
    def strategies(self) -> list[str]:
        """dp, ddp or both."""
        return sorted(self.rows["strategy"].unique())

    @property
    def parameters(self) -> int | None:
        """Parameters of the model, None when the study does not say."""
        stated = self.rows["parameters"].dropna()
        return int(stated.iloc[0]) if len(stated) else None

    @property
    def gradient_bytes(self) -> float:
        """K: bytes of all gradients, NaN when the number of parameters is unknown."""
        return math.nan if self.parameters is None else BYTES_PER_PARAMETER * self.parameters

    def timing(self, train_images: int) -> pd.DataFrame:
        """The table of seconds per epoch, of a training set's D images.

        `recipe` is the model's name. A time without `count` was measured once. Iterations are
        ceil(D / (N·b)), as no study says that it drops the last partial batch. A batch size that
        only the study's sweep has becomes a cell of each strategy; where both have it, the time is
        that of the rows, which the document derives from (see the audit for the other).
        """
        cells = list(self.rows.itertuples())
        for strategy in self.strategies:
            known = {row.batch_size for row in cells if (row.strategy, row.gpus) == (strategy, 1)}
            more = self.sweep[~self.sweep["batch_size"].isin(known)].dropna(subset="epoch_seconds")
            columns = pd.DataFrame(more, columns=self.rows.columns)
            cells += columns.assign(strategy=strategy, status="ok").itertuples()
        return schema.arrange(
            "timing", [{"recipe": self.model, **_timing(cell, train_images)} for cell in cells]
        )


def _timing(cell: Any, train_images: int) -> dict[str, Any]:
    row = {key: getattr(cell, key) for key in [*CELL_KEYS[1:], "status"]} | {"message": ""}
    if cell.status not in TIMED:
        return row
    count = 1 if pd.isna(cell.count) else cell.count
    seconds, without = cell.epoch_seconds, cell.epoch_seconds_without_loading
    low, high = (cell.epoch_seconds_min, cell.epoch_seconds_max) if count > 1 else [seconds] * 2
    return row | {
        "epoch_seconds": seconds,
        "epoch_seconds_without_loading": without,
        "loader_seconds": seconds - without,
        "epoch_seconds_min": low,
        "epoch_seconds_max": high,
        "epoch_seconds_without_loading_min": without if count == 1 else math.nan,
        "epoch_seconds_without_loading_max": without if count == 1 else math.nan,
        "count": count,
        "iterations": math.ceil(train_images / (cell.gpus * cell.batch_size)),
        "samples": train_images,
    }


def read_folder(path: Path) -> list[PublishedStudy]:
    """The studies of a folder's timings.csv, in its order, with what lies beside it.

    Or of one file of the columns of timings.csv, whatever its name, without more. Raises UserError,
    naming file, line and column, for what is missing or cannot be.
    """
    folder = None if path.is_file() else path
    path = folder / "timings.csv" if folder else path
    rows = _table(path, Timing)
    if rows.empty:
        raise UserError(f"{path} has no row; write one for each cell of the study")
    names = list(rows["study"].unique())
    for study in names:
        _check(path, study, rows[rows["study"] == study])
    tables = {"rows": rows}
    for name, (file, model) in BESIDE.items():
        beside = folder / file if folder and (folder / file).exists() else None
        tables[name] = _table(beside, model)
        for row in tables[name][~tables[name]["study"].isin(names)].itertuples():
            raise UserError(
                f"{beside}, line {row.line}, column study: timings.csv has no study {row.study}; "
                "name one it has"
            )
    descriptions = _descriptions(folder / "studies.yaml") if folder else {}
    return [
        PublishedStudy(
            name=study,
            description=descriptions.get(study, Description()),
            **{name: table[table["study"] == study] for name, table in tables.items()},
        )
        for study in names
    ]


def by_name(
    folders: Iterable[Path], reserved: str | None = None
) -> dict[str, tuple[Path, PublishedStudy]]:
    """The studies of all `folders` by name, each with its folder.

    Raises UserError for two of one name, and for one that is called `reserved`.
    """
    found: dict[str, tuple[Path, PublishedStudy]] = {}
    for folder in folders:
        for study in read_folder(folder):
            if study.name == reserved or study.name in found:
                other = found[study.name][0] if study.name in found else "the configuration"
                raise UserError(f"{folder} and {other} both have a study {study.name}; rename one")
            found[study.name] = (folder, study)
    return found


def _table(path: Path | None, model: type[Row]) -> pd.DataFrame:
    rows = list(read_rows(path, model)) if path else []
    return pd.DataFrame(rows, columns=["line", *model.model_fields])


def _check(path: Path, study: str, rows: pd.DataFrame) -> None:
    """What no field shows alone: a cell twice, a time that must or cannot be there, two models."""
    for row in rows[rows.duplicated(["strategy", "gpus", "batch_size"])].itertuples():
        raise UserError(
            f"{path}, line {row.line}: {study} has {row.strategy}, {row.gpus} GPUs, batch "
            f"{row.batch_size} a second time; keep one"
        )
    for row in rows[rows["status"].isin(TIMED) == rows["epoch_seconds"].isna()].itertuples():
        wanted = "needs a time; write it" if row.status in TIMED else "has no time; empty it"
        raise UserError(
            f"{path}, line {row.line}, column epoch_seconds: status {row.status} {wanted}"
        )
    for column in ("model", "parameters"):
        stated = rows.dropna(subset=column).drop_duplicates(column)
        for row in stated.iloc[1:].itertuples():
            raise UserError(
                f"{path}, line {row.line}, column {column}: {study} has two of them; give each "
                "model a study of its own"
            )


def _descriptions(path: Path) -> dict[str, Description]:
    if not path.exists():
        return {}
    try:
        entries: dict[str, dict[str, Any]] = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
        return {study: Description(**entry) for study, entry in entries.items()}
    except (yaml.YAMLError, TypeError, AttributeError) as error:
        raise UserError(
            f"{path} does not describe studies ({error}); write title, hardware, units and doubts "
            "for each"
        ) from error
