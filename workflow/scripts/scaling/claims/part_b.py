"""Part B: the accuracy loss of 8-bit integers."""

from typing import Any

import pandas as pd

from scaling.claims.claim import Answer, Claim, Hypothesis
from scaling.config.scheme import STAGES
from scaling.core import numbers as fmt
from scaling.tables.quantization import costs, difference
from scaling.tables.schema import StudyTables, rows_of

MARGIN = 1.0
"""Accuracy points that int8 may lose."""

LOSS = Hypothesis(
    "B-cost",
    "Computing in 8-bit integers costs less than one point of test accuracy.",
    test="Mean difference to float32 over the seeds, in points, with its 95 % interval for another "
    "network (Student's t over the seeds). Supported: all of it is above −1; refuted: all of it is "
    "below.",
    more="more seeds",
)


def answer(tables: StudyTables) -> Answer:
    """Answer by the last stage; claims on the lab's stages."""
    measured = {row.stage: row for row in rows_of(costs(tables.quantization))}
    claims = {stage: _loss(stage, measured[stage]) for stage in STAGES[1:] if stage in measured}
    if not claims:
        return Answer(None, [LOSS.missing("", "Add seeds to `quantization.seeds`.")])
    stage = list(claims)[-1]
    what = stage.replace("+activations+bias", ", activations and biases").replace("+", " and ")
    return Answer(f"Int8 {what}: {claims[stage].sentence}", list(claims.values()))


def _loss(about: str, row: Any) -> Claim:
    reach = row.margin_points
    unknown = ", whose noise is unknown" if pd.isna(reach) else ""
    return LOSS.claim(
        about,
        f"{row.accuracy_percent:.2f} % against {row.float32_percent:.2f} % in float32: "
        f"{difference(row)} points over {fmt.plural(row.seeds, 'seed')}{unknown}.",
        holds=row.difference_points - reach > -MARGIN,
        fails=row.difference_points + reach < -MARGIN,
    )
