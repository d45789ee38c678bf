"""Question 4.2: the linear scaling rule, and how the best learning rate grows with the batch."""

import math
from typing import Any

from scaling.claims.claim import Claim
from scaling.claims.claim_tables import ClaimTables
from scaling.claims.techniques import reference
from scaling.tables.experiments.best_remedy import plain_sweep


def claims(tables: ClaimTables) -> list[Claim]:
    """Return two claims from convergence.csv and remedies.csv, none without a reference."""
    plain = reference(tables)
    return [_linear_rule(tables), _best_rate(plain.global_batch, tables)] if plain else []


def _linear_rule(tables: ClaimTables) -> Claim:
    """Claim that a k times higher rate diverges for large k and few updates."""
    runs = tables["convergence"]
    swept = runs.groupby("remedy")["factor"].transform("nunique") > 1
    rows = runs[(runs["options"] == "scaling linear") & ~swept]
    rows = rows[(rows["factor"] == 1) & (rows["global_batch"] > rows["global_batch"].min())]
    if rows.empty:
        return tables.missing("Q4.2-rule")
    found = rows.assign(lost=rows["diverged"] != "").groupby("global_batch")
    counts = list(found["lost"].agg(["sum", "count"]).itertuples(name=None))
    figures: dict[str, Any] = {f"diverged_seeds_at_{batch}": lost for batch, lost, _ in counts}
    return tables.claim(
        "Q4.2-rule",
        holds=any(lost == seeds for _, lost, seeds in counts),
        fails=not any(lost for _, lost, _ in counts),
        counts=counts,
        learning_rate=rows["learning_rate"].max(),
        **figures,
    )


def _best_rate(size: int, tables: ClaimTables) -> Claim:
    """Claim that the best rate grows more slowly than the batch, unlike linear scaling."""
    inside = _best_rates(tables)
    if len(inside) < 2 or min(inside) != size:
        return tables.missing("Q4.2-best-rate", size=size)
    largest = max(inside)
    low, exponent, high = (
        math.log(above / below) / math.log(largest / size)
        for above, below in zip(inside[largest], reversed(inside[size]), strict=True)
    )
    figures: dict[str, Any] = {f"best_rate_at_{b}": rate for b, (_, rate, _) in inside.items()}
    return tables.claim(
        "Q4.2-best-rate",
        holds=high < 1,
        fails=low >= 1,
        exponent=exponent,
        exponent_low=low,
        exponent_high=high,
        rates=[(inside[batch][1], batch) for batch in (size, largest)],
        **figures,
    )


def _best_rates(tables: ClaimTables) -> dict[int, tuple[float, float, float]]:
    """Return each global batch's best rate, if inside its sweep, with half a step as error."""
    table, runs = tables["remedies"], tables["convergence"]
    inside = {}
    for batch in sorted(int(batch) for batch in table["global_batch"].unique()):
        row = plain_sweep(table, batch)
        if row is None or row.diverged_seeds or row.at_edge:
            continue
        tried = runs[(runs["remedy"] == row.remedy) & (runs["global_batch"] == batch)]
        rates, best = tried["learning_rate"], row.learning_rate
        below, above = rates[rates < best].max(), rates[rates > best].min()
        inside[batch] = (math.sqrt(best * below), best, math.sqrt(best * above))
    return inside
