"""Question 7: whether ranks that average gradients alone stay alike."""

from typing import Any

import pandas as pd

from scaling.claims.claim import Claim
from scaling.claims.claim_tables import ClaimTables
from scaling.tables import noise

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
    figures = {"ranks": len(rows), "epochs": int(rows["epochs"].iloc[0])}
    return tables.claim(
        "Q7-parameters",
        figures | {f"different_{kind}": hashes for kind, hashes in found.items()},
        holds=not apart,
        fails=apart,
        apart=apart,
        kinds=[NAMES[kind] for kind in kinds],
    )


def _statistics(kinds: Kinds, tables: ClaimTables) -> Claim:
    """That running statistics drift apart, where they are broadcast as well."""
    if any(kinds[kind]["variance_drift_max"].isna().any() for kind in PLAIN):
        return tables.claim("Q7-statistics", {}, case="diverged")
    firsts = {kind: next(kinds[kind].itertuples()) for kind in PLAIN}
    figures: dict[str, Any] = {"ranks": len(kinds["local"])}
    for kind, row in firsts.items():
        figures[f"different_{kind}"] = _hashes(kinds[kind], "buffers")
        for column in ("variance_drift_max", "variance_drift_mean", "mean_drift_max"):
            figures[f"{column}_{kind}"] = getattr(row, column)
    same = [kind for kind in PLAIN if figures[f"different_{kind}"] == 1]
    return tables.claim("Q7-statistics", figures, holds=not same, fails=same)


def _synchronized(kinds: Kinds, tables: ClaimTables) -> Claim:
    """That SyncBatchNorm keeps them equal."""
    if SYNCHRONIZED not in kinds:
        return tables.missing("Q7-sync-statistics")
    rows = kinds[SYNCHRONIZED]
    drift = rows["variance_drift_max"].iloc[0]
    if pd.isna(drift):
        return tables.claim("Q7-sync-statistics", {}, case="diverged")
    different = _hashes(rows, "buffers")
    figures = {"ranks": len(rows), "different": different, "variance_drift_max": drift}
    holds, fails = different == 1, different > 1
    return tables.claim("Q7-sync-statistics", figures, holds=holds, fails=fails)


def _seconds(kind: str, pair: tuple[str, str], kinds: Kinds, tables: ClaimTables) -> Claim:
    """That an epoch with buffers of the second kind of a pair takes longer than with the first."""
    if not set(pair) <= set(kinds):
        return tables.missing(kind)
    base, other = (kinds[buffers].iloc[0] for buffers in pair)
    if not base["count"] == other["count"] > 0:
        return tables.missing(kind, case="not_timed")
    seconds = ("epoch_seconds", "epoch_seconds_min", "epoch_seconds_max")
    figures: dict[str, Any] = {}
    for buffers, row in zip(pair, (base, other), strict=True):
        figures |= {f"{column}_{buffers}": row[column] for column in seconds}
        figures[f"count_{buffers}"] = row["count"]
    ends = [row[end] for row in (base, other) for end in seconds[1:]]
    known = base["count"] > 1 and not noise.ranges_overlap(*ends)
    slower = known and other["epoch_seconds"] > base["epoch_seconds"]
    return tables.claim(
        kind,
        figures,
        holds=slower,
        fails=known and not slower,
        without=NAMES[pair[0]],
        base=base,
        other=other,
    )
