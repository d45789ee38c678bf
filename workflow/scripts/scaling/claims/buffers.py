"""Question 7: whether ranks that average gradients alone stay alike."""

import pandas as pd

from scaling.claims.claim import Claim
from scaling.claims.claim_tables import ClaimTables, disjoint

NAMES = {"broadcast": "broadcast", "local": "local", "sync_batch_norm": "SyncBatchNorm"}
SYNCHRONIZED = "sync_batch_norm"
PLAIN = ("broadcast", "local")

Kinds = dict[str, pd.DataFrame]
"""The rows of buffers.csv, one for each rank, by what becomes of the buffers."""


def claims(tables: ClaimTables) -> list[Claim]:
    """Five claims from buffers.csv, none without it."""
    table = tables["buffers"]
    ranks = table[table["rank"].notna()]
    kinds = {str(kind): rows for kind, rows in ranks.groupby("buffers", sort=False)}
    if not kinds:
        return []
    return [
        _parameters(kinds, tables),
        _statistics(kinds, tables),
        _synchronized(kinds, tables),
        _seconds("Q7-broadcast-seconds", ("local", "broadcast"), kinds, tables),
        _seconds("Q7-sync-seconds", ("broadcast", SYNCHRONIZED), kinds, tables),
    ]


def _hashes(rows: pd.DataFrame, what: str) -> int:
    return int(rows[f"{what}_sha256"].nunique())


def _parameters(kinds: Kinds, tables: ClaimTables) -> Claim:
    """That averaged gradients keep them equal, whatever becomes of the buffers."""
    found = {kind: _hashes(rows, "parameters") for kind, rows in kinds.items()}
    apart = [NAMES[kind] for kind, hashes in found.items() if hashes > 1]
    rows = next(iter(kinds.values()))
    return tables.claim(
        "Q7-parameters",
        holds=not apart,
        fails=apart,
        ranks=len(rows),
        epochs=int(rows["epochs"].iloc[0]),
        apart=apart,
        kinds=[NAMES[kind] for kind in kinds],
    )


def _statistics(kinds: Kinds, tables: ClaimTables) -> Claim:
    """That running statistics drift apart, where they are broadcast as well."""
    if any(kinds[kind]["variance_drift_max"].isna().any() for kind in PLAIN):
        return tables.claim("Q7-statistics", case="diverged")
    firsts = {kind: next(kinds[kind].itertuples()) for kind in PLAIN}
    different = [_hashes(kinds[kind], "buffers") for kind in PLAIN]
    return tables.claim(
        "Q7-statistics",
        holds=1 not in different,
        fails=1 in different,
        ranks=len(kinds["local"]),
        **firsts,
    )


def _synchronized(kinds: Kinds, tables: ClaimTables) -> Claim:
    """That SyncBatchNorm keeps them equal."""
    if SYNCHRONIZED not in kinds:
        return tables.missing("Q7-sync-statistics")
    rows = kinds[SYNCHRONIZED]
    drift = rows["variance_drift_max"].iloc[0]
    if pd.isna(drift):
        return tables.claim("Q7-sync-statistics", case="diverged")
    different = _hashes(rows, "buffers")
    return tables.claim(
        "Q7-sync-statistics",
        holds=different == 1,
        fails=different > 1,
        ranks=len(rows),
        different=different,
        variance_drift_max=drift,
    )


def _seconds(kind: str, pair: tuple[str, str], kinds: Kinds, tables: ClaimTables) -> Claim:
    """That an epoch with buffers of the second kind of a pair takes longer than with the first."""
    absent = not set(pair) <= set(kinds)
    if absent or not kinds[pair[0]]["count"].iloc[0] == kinds[pair[1]]["count"].iloc[0] > 0:
        return tables.missing(kind, absent=absent)
    base, other = (next(kinds[buffers].itertuples()) for buffers in pair)
    known = disjoint(base, other, "epoch_seconds")
    slower = known and other.epoch_seconds > base.epoch_seconds
    return tables.claim(
        kind,
        holds=slower,
        fails=known and not slower,
        without=NAMES[pair[0]],
        base=base,
        other=other,
    )
