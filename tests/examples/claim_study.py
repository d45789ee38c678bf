"""Tables made by hand, what follows from them, and the claims on these."""

from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd

from examples.records import runs_of, timing_table
from scaling.claims.claim import Answer, Claim
from scaling.tables import schema
from scaling.tables.epoch_parts import bandwidth, communication, utilization
from scaling.tables.ratios import speedup
from scaling.tables.schema import StudyTables
from scaling.tables.timing import Run

Tables = dict[str, pd.DataFrame]


def derived(runs: Sequence[Run] = (), **rows: Any) -> StudyTables:
    """Tables of these rows, and those that follow from them and from the instruments of `runs`."""
    found = {name: schema.frame(name, own) for name, own in rows.items()}
    if "timing" in found:
        found.setdefault("provenance", runs_of(found["timing"]))
    tables = StudyTables("example", found)
    found["communication"] = communication(tables, [*runs])
    for make in (speedup, bandwidth, utilization):
        found[make.__name__] = make(tables)
    return tables


def study(*rows: dict[str, Any]) -> Tables:
    """Rows of timing.csv and what follows from them."""
    return {**derived(timing=timing_table(*rows)).found}


def claims(answer: Callable[[StudyTables], Answer], made: Tables) -> dict[str, Claim]:
    """The claims of an answer to these tables, by their ids."""
    return {claim.id: claim for claim in answer(StudyTables("example", made)).claims}
