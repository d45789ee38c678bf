"""Question 7: whether ranks that only average gradients stay equal."""

from typing import Any

import pandas as pd

from scaling.claims.claim import Claim
from scaling.claims.claim_tables import ClaimTables
from scaling.tables import noise
from scaling.tables.schema import rows_of

NAMES = {"broadcast": "broadcast", "local": "local", "sync_batch_norm": "SyncBatchNorm"}
SYNCHRONIZED = "sync_batch_norm"

Kinds = dict[str, pd.DataFrame]
"""The rows of buffers.csv, one per rank, by buffer mode."""


def claims(tables: ClaimTables) -> list[Claim]:
    """Return four claims from buffers.csv, none without it; one for a network without buffers."""
    table = tables["buffers"]
    ranks = table[table["rank"].notna()]
    kinds = {str(kind): rows for kind, rows in ranks.groupby("buffers", sort=False)}
    if not kinds:
        return []
    alike = _parameters(kinds, tables)
    if (tables["collectives"]["buffer_bytes"] == 0).all():
        return [alike]
    return [
        alike,
        _synchronized(kinds.get(SYNCHRONIZED), tables),
        _seconds("Q7-broadcast-seconds", "local", "broadcast", kinds, tables),
        _seconds("Q7-sync-seconds", "broadcast", SYNCHRONIZED, kinds, tables),
    ]


def _parameters(kinds: Kinds, tables: ClaimTables) -> Claim:
    """Claim that averaged gradients keep parameters equal for every buffer mode."""
    first = next(iter(kinds.values()))
    apart = [kind for kind, rows in kinds.items() if rows["parameters_sha256"].nunique() > 1]
    return tables.claim(
        "Q7-parameters",
        holds=not apart,
        fails=apart,
        ranks=len(first),
        epochs=int(first["epochs"].iloc[0]),
        apart=[NAMES[kind] for kind in apart],
        kinds=[NAMES[kind] for kind in kinds],
    )


def _synchronized(rows: pd.DataFrame | None, tables: ClaimTables) -> Claim:
    """Claim that SyncBatchNorm keeps running statistics equal."""
    if rows is None:
        return tables.missing("Q7-sync-statistics")
    drift, different = rows["variance_drift_max"].iloc[0], rows["buffers_sha256"].nunique()
    if pd.isna(drift):
        return tables.claim("Q7-sync-statistics", case="diverged")
    return tables.claim(
        "Q7-sync-statistics",
        holds=different == 1,
        fails=different > 1,
        ranks=len(rows),
        different=different,
        variance_drift_max=drift,
    )


def _seconds(kind: str, first: str, second: str, kinds: Kinds, tables: ClaimTables) -> Claim:
    """Claim that an epoch with the second buffer mode takes longer than with the first."""
    if second not in kinds:
        return tables.missing(kind, absent=True)
    base, other = (next(rows_of(kinds[buffers])) for buffers in (first, second))
    if not base.count == other.count > 0:
        return tables.missing(kind, absent=False)
    slower, without = noise.ratio([other], [base]), NAMES[first]
    holds, fails = slower.low > 1, slower.high < 1
    facts: dict[str, Any] = {"without": without, "base": base, "other": other}
    return tables.claim(kind, holds=holds, fails=fails, ratios=[slower], **facts)
