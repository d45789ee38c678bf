"""Tables of a published study, as a measured one has."""

import math
from pathlib import Path

import pandas as pd

from grader import study as published
from grader.findings import judge
from grader.rows import NOT_STATED
from grader.study import CIFAR10_TRAIN_IMAGES, PublishedStudy
from scaling.audit.derive import tables_of_times
from scaling.core import command_line
from scaling.registry.strategy import STRATEGIES
from scaling.tables import schema


def tables_of_published(source: PublishedStudy, train_images: int) -> dict[str, pd.DataFrame]:
    """The tables `study.TABLES` of a study, for a training set of `train_images`."""
    times = source.timing(train_images)
    # Whoever states none has the table of one that the study has not, without bytes.
    other = next(name for name in STRATEGIES.names() if name not in source.strategies)
    size = math.nan if NOT_STATED in source.strategies else source.gradient_bytes
    found = tables_of_times(times.replace({"strategy": {NOT_STATED: other}}), size, {})
    found = {x: table.replace({"strategy": {other: NOT_STATED}}) for x, table in found.items()}
    judged = judge(source, train_images).rename(columns={"cause": "check", "sentence": "message"})
    expected = (judged["expected_low"] + judged["expected_high"]) / 2
    audit = schema.arrange("audit", judged.assign(recipe=source.model, expected=expected))
    return {"timing": times, **found, "audit": audit.astype({"found": float, "expected": float})}


@command_line.script
def main(folder: Path, study: str, tables: Path, train_images: int = CIFAR10_TRAIN_IMAGES) -> None:
    (source,) = (found for found in published.read_folder(folder) if found.name == study)
    schema.write_all(tables_of_published(source, train_images), tables, study)
