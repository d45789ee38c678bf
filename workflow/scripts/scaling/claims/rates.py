"""Question 4.2: linear scaling of the rate, and how the best rate grows with the batch."""

import math
from dataclasses import dataclass
from typing import Any

from scaling.claims.claim import Claim
from scaling.claims.claim_tables import ClaimTables
from scaling.claims.techniques import figures_of, reference_runs
from scaling.tables.experiments.best_remedy import plain_sweep, without_sweep


def claims(tables: ClaimTables) -> list[Claim]:
    """Two claims from convergence.csv and remedies.csv, none without a reference."""
    if reference_runs(tables).empty:
        return []
    return [_linear_rule(tables), _best_rate(tables)]


def _linear_rule(tables: ClaimTables) -> Claim:
    """That the rate k times as high diverges once k is large and updates are few."""
    runs = tables["convergence"]
    rows = runs[(runs["options"] == "scaling linear") & runs["remedy"].isin(without_sweep(runs))]
    rows = rows[rows["factor"] == 1]
    rows = rows[rows["global_batch"] > rows["global_batch"].min()]
    if rows.empty:
        return tables.missing("Q4.2-rule")
    counts: list[tuple[int, int, int]] = []
    figures: dict[str, Any] = {}
    for batch in sorted(map(int, rows["global_batch"].unique())):
        group = rows[rows["global_batch"] == batch]
        lost = int((group["diverged"] != "").sum())
        counts.append((batch, lost, len(group)))
        figures |= {
            f"learning_rate_at_{batch}": group["learning_rate"].iloc[0],
            f"updates_at_{batch}": group["planned_updates"].iloc[0],
            f"seeds_at_{batch}": len(group),
            f"diverged_seeds_at_{batch}": lost,
            **figures_of(group, "test_accuracy", f"at_{batch}_"),
        }
    return tables.claim(
        "Q4.2-rule",
        figures,
        holds=any(lost == seeds for _, lost, seeds in counts),
        fails=not any(lost for _, lost, _ in counts),
        counts=counts,
        rate=rows.loc[rows["global_batch"].idxmax(), "learning_rate"],
    )


@dataclass(frozen=True)
class _Best:
    """The best swept rate at a global batch, and how far half a step of the sweep reaches."""

    batch: int
    rate: float
    low: float
    high: float


def _best_rate(tables: ClaimTables) -> Claim:
    """That it grows more slowly than the batch; linear scaling lets it grow alike."""
    size = int(reference_runs(tables)["global_batch"].iloc[0])
    inside = _best_rates(tables)
    if len(inside) < 2 or inside[0].batch != size:
        return tables.missing("Q4.2-best-rate", size=size)
    small, large = inside[0], inside[-1]
    low = _exponent(small, large, small.high, large.low)
    high = _exponent(small, large, small.low, large.high)
    return tables.claim(
        "Q4.2-best-rate",
        {
            "exponent": _exponent(small, large, small.rate, large.rate),
            "exponent_low": low,
            "exponent_high": high,
            **{f"best_rate_at_{best.batch}": best.rate for best in inside},
        },
        holds=high < 1,
        fails=low >= 1,
        small=small,
        large=large,
    )


def _best_rates(tables: ClaimTables) -> list[_Best]:
    """Those that are no end of their sweep, by ascending global batch."""
    table, runs = tables["remedies"], tables["convergence"]
    inside = []
    for batch in sorted(int(batch) for batch in table["global_batch"].unique()):
        row: Any = plain_sweep(table, batch)
        if row is None or row.diverged_seeds or row.at_edge:
            continue
        tried = runs[(runs["remedy"] == row.remedy) & (runs["global_batch"] == batch)]
        rates = tried["learning_rate"]
        below, above = rates[rates < row.learning_rate].max(), rates[rates > row.learning_rate]
        steps = [math.sqrt(row.learning_rate * next_to) for next_to in (below, above.min())]
        inside.append(_Best(batch, row.learning_rate, *steps))
    return inside


def _exponent(small: _Best, large: _Best, first: float, second: float) -> float:
    return math.log(second / first) / math.log(large.batch / small.batch)
