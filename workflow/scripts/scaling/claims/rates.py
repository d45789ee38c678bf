"""Question 4.2: how the best learning rate grows with the batch."""

import math
from typing import Any

from scaling.claims.claim import Claim
from scaling.claims.claim_tables import ClaimTables
from scaling.claims.techniques import reference
from scaling.tables.experiments.best_remedy import plain_sweep


def claims(tables: ClaimTables) -> list[Claim]:
    """Return a claim from convergence.csv and remedies.csv, none without a reference."""
    plain = reference(tables)
    return [_best_rate(plain.global_batch, tables)] if plain else []


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
