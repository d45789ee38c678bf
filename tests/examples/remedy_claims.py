"""The claims on question 4 of records made by hand, by their ids."""

from collections.abc import Callable

from examples.convergence_records import MARGIN, study
from scaling.claims.claim import Claim
from scaling.claims.claim_tables import ClaimTables
from scaling.core.records.convergence import ConvergenceRecord
from scaling.tables.experiments import convergence, remedies


def claims(
    function: Callable[[ClaimTables], list[Claim]], records: list[ConvergenceRecord]
) -> dict[str, Claim]:
    """What a module claims of these records."""
    runs = convergence.runs(records)
    found = {"convergence": runs, "remedies": remedies.remedies(runs, MARGIN)}
    return {claim.id: claim for claim in function(ClaimTables("demo", found))}


def few(*changed: ConvergenceRecord) -> list[ConvergenceRecord]:
    """Records of plain SGD, a warm-up and equal updates at 128 and 512, some of them changed.

    Batch 128 has 73 % test accuracy with its best technique and 71 % with plain SGD.
    """
    names = ("none", "rate_sweep", "warmup", "equal")
    known = [each for each in study() if each["remedy"] in names and each["global_batch"] < 8192]
    records = {(each["remedy"], each["global_batch"]): each for each in (*known, *changed)}
    return list(records.values())


def without(name: str, *batches: int) -> list[ConvergenceRecord]:
    """The records of `study` but those of a remedy (at these batches)."""
    return [
        each
        for each in study()
        if each["remedy"] != name or (batches and each["global_batch"] not in batches)
    ]
