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
    """Six claims from buffers.csv."""
    table = tables["buffers"]
    ranks = table[table["rank"].notna()]
    kinds = {str(kind): rows for kind, rows in ranks.groupby("buffers", sort=False)}
    notes = dict(zip(table["buffers"], table["note"], strict=True))
    return [
        _parameters(kinds, tables),
        _statistics(kinds, tables),
        _synchronized(kinds, notes, tables),
        _evaluation(kinds, tables),
        _seconds("Q7-broadcast-seconds", ("local", "broadcast"), kinds, notes, tables),
        _seconds("Q7-sync-seconds", ("broadcast", SYNCHRONIZED), kinds, notes, tables),
    ]


def _hashes(rows: pd.DataFrame, what: str) -> int:
    return int(rows[f"{what}_sha256"].nunique())


def _parameters(kinds: Kinds, tables: ClaimTables) -> Claim:
    if not kinds:
        return tables.missing("Q7-parameters", "no_ranks")
    found = {kind: _hashes(rows, "parameters") for kind, rows in kinds.items()}
    apart = [NAMES[kind] for kind, hashes in found.items() if hashes > 1]
    plain = [kinds[kind] for kind in PLAIN if kind in kinds]
    rows = next(iter(kinds.values()))
    figures = {"ranks": len(rows), "epochs": int(rows["epochs"].iloc[0])}
    return tables.claim(
        "Q7-parameters",
        figures | {f"different_{kind}": hashes for kind, hashes in found.items()},
        holds=not apart,
        fails=apart,
        apart=apart,
        kinds=[NAMES[kind] for kind in kinds],
        same=len(plain) == len(PLAIN) and _hashes(pd.concat(plain), "parameters") == 1,
    )


def _statistics(kinds: Kinds, tables: ClaimTables) -> Claim:
    if not set(PLAIN) <= set(kinds):
        return tables.missing("Q7-statistics", "no_ranks")
    if any(kinds[kind]["variance_drift_max"].isna().any() for kind in PLAIN):
        return tables.missing("Q7-statistics", "diverged")
    firsts = {kind: next(kinds[kind].itertuples()) for kind in PLAIN}
    figures: dict[str, Any] = {}
    for kind, row in firsts.items():
        figures[f"different_{kind}"] = _hashes(kinds[kind], "buffers")
        for column in ("variance_drift_max", "variance_drift_mean", "mean_drift_max"):
            figures[f"{column}_{kind}"] = getattr(row, column)
    same = [kind for kind in PLAIN if figures[f"different_{kind}"] == 1]
    return tables.claim(
        "Q7-statistics",
        figures,
        holds=not same,
        fails=same,
        same=same,
        ranks=len(kinds["local"]),
        **firsts,
    )


def _synchronized(kinds: Kinds, notes: dict[str, str], tables: ClaimTables) -> Claim:
    if SYNCHRONIZED not in kinds:
        reason = _why_not(SYNCHRONIZED, notes)
        return tables.missing("Q7-sync-statistics", "not_measured", reason=reason)
    rows = kinds[SYNCHRONIZED]
    if rows["variance_drift_max"].isna().any():
        return tables.missing("Q7-sync-statistics", "diverged")
    different = _hashes(rows, "buffers")
    figures = {
        "ranks": len(rows),
        "different": different,
        "variance_drift_max": rows.iloc[0]["variance_drift_max"],
    }
    holds, fails = different == 1, different > 1
    return tables.claim("Q7-sync-statistics", figures, holds=holds, fails=fails)


def _evaluation(kinds: Kinds, tables: ClaimTables) -> Claim:
    if not set(PLAIN) & set(kinds):
        return tables.missing("Q7-evaluation", "no_ranks")
    figures: dict[str, Any] = {}
    ranges = []
    for kind, rows in kinds.items():
        low, high = rows["test_accuracy"].min(), rows["test_accuracy"].max()
        figures |= {f"test_accuracy_min_{kind}": low, f"test_accuracy_max_{kind}": high}
        ranges.append((NAMES[kind], low, high))
    differ = any(kinds[kind]["test_accuracy"].nunique() > 1 for kind in PLAIN if kind in kinds)
    return tables.claim("Q7-evaluation", figures, holds=differ, fails=not differ, ranges=ranges)


def _seconds(
    id: str, pair: tuple[str, str], kinds: Kinds, notes: dict[str, str], tables: ClaimTables
) -> Claim:
    """That an epoch with buffers of the second kind of a pair takes longer than with the first."""
    absent = next((kind for kind in pair if kind not in kinds), None)
    if absent:
        buffers = NAMES[absent] + ("" if absent == SYNCHRONIZED else " buffers")
        reason = _why_not(absent, notes)
        return tables.missing(id, "not_measured", absent=buffers, reason=reason)
    first, second = pair
    base, other = kinds[first].iloc[0], kinds[second].iloc[0]
    what = "broadcasting buffers" if second == "broadcast" else NAMES[second]
    if not base["count"] == other["count"] > 0:
        return tables.missing(id, "not_timed", what=what)
    seconds = ("epoch_seconds", "epoch_seconds_min", "epoch_seconds_max")
    figures: dict[str, Any] = {}
    for kind, row in ((first, base), (second, other)):
        figures |= {f"{column}_{kind}": row[column] for column in seconds}
        figures[f"count_{kind}"] = row["count"]
    ends = [row[end] for row in (base, other) for end in seconds[1:]]
    known = base["count"] > 1 and not noise.ranges_overlap(*ends)
    slower = known and other["epoch_seconds"] > base["epoch_seconds"]
    return tables.claim(
        id,
        figures,
        holds=slower,
        fails=known and not slower,
        what=what,
        without=NAMES[first],
        base=base,
        other=other,
    )


def _why_not(kind: str, notes: dict[str, str]) -> str:
    return notes.get(kind) or "not measured: the study has no such training"
