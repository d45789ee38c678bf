"""The record of one remedy at one global batch. Needs no torch."""

from pathlib import Path
from typing import Any, TypedDict

from scaling.core import files

PATTERN = "remedy~{remedy}/global_batch~{global_batch}"


class ConvergenceRecord(TypedDict):
    """The whole document.

    `status` ok, oom, oom_host or infeasible, and for those but ok a `message`; `options` the
    remedy's; `training` what all runs have in common (`plan.Study`); `dataset` source, checksum and
    numbers of images; `result` as `Experiment.record` gives it, null unless
    ok; `environment` as `scaling.environment` describes it.
    """

    remedy: str
    global_batch: int
    options: dict[str, Any]
    status: str
    message: str | None
    training: dict[str, Any]
    dataset: dict[str, Any]
    result: dict[str, Any] | None
    environment: dict[str, Any]


def path(records: Path, remedy: str, global_batch: int) -> Path:
    """Where the record lies below the folder `records`."""
    return records / PATTERN.format(remedy=remedy, global_batch=global_batch) / "runs.json"


def read(source: Path) -> ConvergenceRecord:
    """The record at `source`; a missing or broken file is a UserError that names it."""
    record: ConvergenceRecord = files.read_json(source)
    return record
