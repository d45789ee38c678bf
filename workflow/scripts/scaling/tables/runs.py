"""Runs of the grid with their records, which every table of runs is made from."""

from dataclasses import asdict
from pathlib import Path

from scaling.core.errors import UserError
from scaling.core.grid import RUN_PATTERN, Cell
from scaling.core.records import RunRecord, read_record

Run = tuple[Cell, RunRecord | None]
"""A run of the grid and its record, None while there is none."""


def read_runs(cells: list[Cell], folder: Path, partial: bool) -> list[Run]:
    """Every run of `cells` with its record below `folder`.

    With `partial` a run may have no record (None); without, that is a UserError, as is a record
    that says it belongs to another run.
    """
    found: list[Run] = []
    for cell in cells:
        path = cell.record_path(folder)
        record = read_record(path) if path.exists() else None
        if record is not None and not asdict(cell).items() <= record["cell"].items():
            raise UserError(f"{path} is the record of {record['cell']}, not of {cell}; delete it")
        found.append((cell, record))
    absent = [cell for cell, record in found if record is None]
    if absent and not partial:
        log = f"logs/train_run/{RUN_PATTERN}.log".format(**asdict(absent[0]))
        raise UserError(
            f"{len(absent)} of {len(found)} runs have no record, the first is {absent[0]}: "
            f"see {log}, run them again, or pass --partial"
        )
    return found
