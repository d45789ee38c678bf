"""The claims on question 4 of records made by hand, by their ids."""

import json
from pathlib import Path

from examples import convergence_records
from scaling.claims import claim, gaps, large_batches, rates, techniques, time_to_accuracy
from scaling.claims.claim import Claim
from scaling.claims.claim_tables import ClaimTables
from scaling.core.records import ConvergenceRecord
from scaling.tables import schema

Cell = tuple[int, int, float]


def claims(
    folder: Path,
    records: list[ConvergenceRecord],
    cells: list[Cell] | None = None,
    time_margin: float = 0.22,
) -> dict[str, Claim]:
    """What is claimed of these records beside timed (gpus, batch_size, epoch_seconds) cells.

    The tables are read back from their files, as a script does.
    """
    timing = convergence_records.timed(*(cells or []))
    found = {}
    for name, table in convergence_records.tables(timing, records, time_margin).items():
        schema.write(name, table, folder / f"{name}.csv")
        found[name] = schema.read(name, folder / f"{name}.csv")
    made = [
        each
        for module in (large_batches, rates, gaps, techniques, time_to_accuracy)
        for each in module.claims(ClaimTables("demo", found))
    ]
    claim.write(folder / "claims.json", "demo", made)
    assert json.loads((folder / "claims.json").read_text())["study"] == "demo"
    assert len({each.id for each in made}) == len(made)
    return {each.id: each for each in made}


def without(name: str, *batches: int) -> list[ConvergenceRecord]:
    """The records of `convergence_records.study` but those of a remedy (at these batches)."""
    return [
        each
        for each in convergence_records.study()
        if each["remedy"] != name or (batches and each["global_batch"] not in batches)
    ]
