"""Part B: the accuracy loss of 8-bit integers, and whether their arithmetic is exact."""

import math
from dataclasses import asdict
from typing import Any

import pandas as pd

from scaling.claims.claim import Claim
from scaling.claims.claim_tables import ClaimTables
from scaling.config.scheme import STAGES
from scaling.tables import noise
from scaling.tables.experiments.quantization_cost import STANDARD_ERRORS, Cost, cost

MARGIN = 1.0
"""Accuracy points that int8 may lose."""


def claims(tables: ClaimTables) -> list[Claim]:
    """Return claims on the lab's stages, from quantization.csv, and on ResNet-18's last one."""
    made = []
    for case, rows in _cases(tables).items():
        if rows.empty:
            continue
        found = cost(rows)
        reach = STANDARD_ERRORS * found.standard_error_points
        holds = found.difference_points - reach > -MARGIN
        fails = found.difference_points + reach < -MARGIN
        figures = asdict(found) | {"difference": found.difference}
        figures |= {"ratios": [_repeats_needed(rows, found)]} if reach == reach else {}
        made.append(tables.claim("B-cost", case, holds=holds, fails=fails, **figures))
        compared, differing = rows["logits_compared"].sum(), rows["logits_differing"].sum()
        if compared:
            facts: dict[str, Any] = {"compared": int(compared), "differing": int(differing)}
            exact = differing == 0
            made.append(tables.claim("B-exact", case, holds=exact, fails=not exact, **facts))
    return made


def _cases(tables: ClaimTables) -> dict[str, pd.DataFrame]:
    table, resnet = tables["quantization"], tables["quantization_resnet"]
    found = {stage: table[table["stage"] == stage] for stage in STAGES[1:]}
    names = {"logits": "logits_compared", "differing_logits": "logits_differing"}
    last = resnet[resnet["stage"] == STAGES[-1]].rename(columns=names)
    for scales, rows in last.groupby("weight_scales", sort=False):
        found[f"ResNet-18/{scales}"] = rows
    return found


def _repeats_needed(rows: pd.DataFrame, found: Cost) -> noise.Ratio:
    """Return how many more seeds would distinguish the mean difference from the margin.

    Its squared error over n seeds is A + B/n: A is due to the test images, which all seeds share.
    """
    if found.seeds < 2:
        return noise.repeats_for_seeds(math.nan, [], [found.seeds])
    single = float(rows["standard_error_points"].astype(float).pow(2).mean())
    own = (single - found.standard_error_points**2) / (1 - 1 / found.seeds)
    wanted = ((found.difference_points + MARGIN) / STANDARD_ERRORS) ** 2
    room = wanted - (single - own)
    more = max(1, math.floor(own / room) + 1 - found.seeds) if room > 0 else math.inf
    return noise.Ratio(math.nan, math.nan, f"between {found.seeds} seeds", more)
