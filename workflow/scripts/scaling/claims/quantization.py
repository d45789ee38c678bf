"""Part B: what 8-bit integers cost in accuracy, and whether their arithmetic is exact."""

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
        claim = tables.claim(
            "B-cost",
            stage,
            holds=found.difference_points - reach > -MARGIN,
            fails=found.difference_points + reach < -MARGIN,
            seeds=found.seeds,
            accuracy_percent=found.accuracy_percent,
            float32_percent=found.float32_percent,
            difference_points=found.difference_points,
            standard_error_points=found.standard_error_points,
            difference=found.difference,
        )
        made.append(claim)
        compared, differing = rows["logits_compared"].sum(), rows["logits_differing"].sum()
        if compared:
            made.append(
                tables.claim(
                    "B-exact",
                    stage,
                    holds=differing == 0,
                    fails=differing > 0,
                    compared=int(compared),
                    differing=int(differing),
                )
            )
    return made
