"""Part B: what 8-bit integers cost in accuracy, and whether their arithmetic is exact."""

from dataclasses import asdict
from typing import Any

from scaling.claims.claim import Claim
from scaling.claims.claim_tables import ClaimTables
from scaling.config.scheme import STAGES
from scaling.tables.experiments.quantization_cost import STANDARD_ERRORS, cost

MARGIN = 1.0
"""Points of accuracy that int8 may cost."""


def claims(tables: ClaimTables) -> list[Claim]:
    """Claims on each of the lab's stages, from quantization.csv."""
    table, made = tables["quantization"], []
    for stage in STAGES[1:]:
        rows = table[table["stage"] == stage]
        if rows.empty:
            continue
        found = cost(rows)
        reach = STANDARD_ERRORS * found.standard_error_points
        holds = found.difference_points - reach > -MARGIN
        fails = found.difference_points + reach < -MARGIN
        figures = asdict(found) | {"difference": found.difference}
        made.append(tables.claim("B-cost", stage, holds=holds, fails=fails, **figures))
        compared, differing = rows["logits_compared"].sum(), rows["logits_differing"].sum()
        if compared:
            facts: dict[str, Any] = {"compared": int(compared), "differing": int(differing)}
            exact = differing == 0
            made.append(tables.claim("B-exact", stage, holds=exact, fails=not exact, **facts))
    return made
