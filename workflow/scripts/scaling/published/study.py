"""Published studies: the times and the derived figures that someone printed, as data."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from scaling.core.errors import UserError
from scaling.published.rows import Accuracy, Quantization, Row, Sweep, Timing, read_rows
from scaling.tables.timing import TIMED

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
        """The name of the model."""
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


def read_folder(folder: Path) -> list[PublishedStudy]:
    """The studies of `folder`/timings.csv, in its order, with what lies beside it.

    Raises UserError, naming file, line and column, for what is missing or cannot be.
    """
    return _read(folder / "timings.csv", folder)


def read_file(path: Path) -> list[PublishedStudy]:
    """The studies of one table of the columns of timings.csv, whatever its name, without more.

    Raises UserError as `read_folder` does.
    """
    return _read(path, None)


def _read(path: Path, folder: Path | None) -> list[PublishedStudy]:
    rows = _table(path, Timing)
    if rows.empty:
        raise UserError(f"{path} has no row; write one for each cell of the study")
    for study, own in rows.groupby("study", sort=False):
        _check(path, str(study), own)
    table = partial(_beside, rows["study"].unique(), folder)
    sweep = table("batch_sweep.csv", Sweep)
    accuracy = table("accuracy.csv", Accuracy)
    quantization = table("quantization.csv", Quantization)
    descriptions = _descriptions(folder / "studies.yaml") if folder else {}
    return [
        PublishedStudy(
            name=study,
            description=descriptions.get(study, Description()),
            **{
                name: found[found["study"] == study].drop(columns=["study", "line"])
                for name, found in {
                    "rows": rows,
                    "sweep": sweep,
                    "accuracy": accuracy,
                    "quantization": quantization,
                }.items()
            },
        )
        for study in rows["study"].unique()
    ]


def read_study(folder: Path, name: str) -> PublishedStudy:
    """The study called `name` in `folder`; UserError names those there are."""
    studies = {study.name: study for study in read_folder(folder)}
    if name not in studies:
        raise UserError(f"{folder} has no study {name!r}: it has {', '.join(studies)}")
    return studies[name]


def by_name(
    folders: Iterable[Path], reserved: str | None = None
) -> dict[str, tuple[Path, PublishedStudy]]:
    """The studies of all `folders` by name, each with its folder.

    Raises UserError for two of one name, and for one that is called `reserved`.
    """
    found: dict[str, tuple[Path, PublishedStudy]] = {}
    for folder in folders:
        for study in read_folder(folder):
            if study.name == reserved:
                raise UserError(
                    f"{folder} has a study {study.name}, the name of the measured one; rename it"
                )
            if study.name in found:
                raise UserError(
                    f"{found[study.name][0]} and {folder} both have a study {study.name}; "
                    "rename one"
                )
            found[study.name] = (folder, study)
    return found


def _table(path: Path, model: type[Row]) -> pd.DataFrame:
    return pd.DataFrame(list(read_rows(path, model)), columns=["line", *model.model_fields])


def _beside(
    studies: Iterable[str], folder: Path | None, name: str, model: type[Row]
) -> pd.DataFrame:
    """A table that a folder may have; its studies must be those of timings.csv."""
    if folder is None or not (folder / name).exists():
        return pd.DataFrame(columns=["line", *model.model_fields])
    path = folder / name
    table = _table(path, model)
    for row in table[~table["study"].isin(list(studies))].itertuples():
        raise UserError(
            f"{path}, line {row.line}, column study: timings.csv has no study {row.study}; "
            "name one it has"
        )
    return table


def _check(path: Path, study: str, rows: pd.DataFrame) -> None:
    """What no field shows alone: a cell twice, a time that must or cannot be there, two models."""
    cell = ["strategy", "gpus", "batch_size"]
    for row in rows[rows.duplicated(cell)].itertuples():
        raise UserError(
            f"{path}, line {row.line}: {study} has {row.strategy}, {row.gpus} GPUs, batch "
            f"{row.batch_size} a second time; keep one"
        )
    for row in rows.itertuples():
        where = f"{path}, line {row.line}, column epoch_seconds"
        if row.status in TIMED and math.isnan(row.epoch_seconds):
            raise UserError(f"{where}: status {row.status} needs a time; write it")
        if row.status not in TIMED and not math.isnan(row.epoch_seconds):
            raise UserError(f"{where}: status {row.status} has no time; empty it")
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
