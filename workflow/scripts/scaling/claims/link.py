"""Question 3.2: how much of the link between GPUs is used."""

from scaling.claims.claim import Claim
from scaling.claims.claim_tables import ClaimTables, extremes, measured
from scaling.core import numbers as fmt
from scaling.tables import noise
from scaling.tables.schema import by_configuration

HALF = 0.5
ESTIMATES = ("profiler", "subtraction_without_loading")
"""A trace is believed first; what a subtraction finds is all that does not shrink with N."""


def claims(tables: ClaimTables) -> list[Claim]:
    """That gradients, where they travel fastest, use at least half of what the link can carry."""
    made = []
    for recipe, strategy, rows in by_configuration(tables["bandwidth"]):
        gpus = rows["gpus"].max()
        about = f"{recipe}/{strategy}, {fmt.gpus(gpus)}"
        cells = measured(rows[rows["gpus"] == gpus], "utilization")
        cells = noise.with_resolution(cells, tables["timing"])
        # More than the peak is no communication time.
        real = cells[~cells["within_noise"] & (cells["utilization"] <= 1)]
        found = [real[real["estimate"] == estimate] for estimate in ESTIMATES]
        known = next((one for one in found if len(one)), None)
        if known is None:
            made.append(tables.missing("Q3.2-travelling", about))
            continue
        worst, best = extremes(known, "utilization")
        traced, enough = best.estimate == "profiler", best.utilization >= HALF
        claim = tables.claim(
            "Q3.2-travelling",
            about,
            holds=enough,
            fails=traced and not enough,
            best=best,
            worst=worst,
            traced=traced,
        )
        made.append(claim)
    return made
