"""Part B: the accuracy loss of 8-bit integers."""

import math

import pandas as pd

from scaling.claims.claim import Answer, Claim, Hypothesis
from scaling.config.scheme import STAGES
from scaling.core import numbers as fmt
from scaling.tables.experiments.quantization import STANDARD_ERRORS, cost, difference
from scaling.tables.schema import StudyTables

MARGIN = 1.0
"""Accuracy points that int8 may lose."""

LOSS = Hypothesis(
    "B-cost",
    "Computing in 8-bit integers costs less than one point of test accuracy.",
    test="Mean difference to float32 over the seeds, in points, ± its 95 % interval (two standard "
    "errors of pairs of predictions on each test image). Supported: all of it is above −1; "
    "refuted: all of it is below.",
    more="more seeds",
)


def answer(tables: StudyTables) -> Answer:
    """Answer by the last stage; claims on the lab's stages, and on ResNet-18's last one."""
    table, resnet = tables.quantization, tables.quantization_resnet
    stages = {stage: rows for stage in STAGES[1:] if len(rows := table[table["stage"] == stage])}
    last = resnet[resnet["stage"] == STAGES[-1]].groupby("weight_scales", sort=False)
    cases = stages | {f"ResNet-18/{scales}": rows for scales, rows in last}
    claims = {about: _loss(about, rows) for about, rows in cases.items()}
    if not stages:
        add = "Add seeds to `quantization.seeds`."
        return Answer(None, list(claims.values()) or [LOSS.missing("", add)])
    stage = list(stages)[-1]
    what = stage.replace("+activations+bias", ", activations and biases").replace("+", " and ")
    text = f"Int8 {what}: {claims[stage].sentence}"
    if stage == STAGES[-1] and "ResNet-18/tensor" in cases:
        text += f" ResNet-18: {difference(cost(cases['ResNet-18/tensor']))} points."
    return Answer(text, list(claims.values()))


def _loss(about: str, rows: pd.DataFrame) -> Claim:
    found = cost(rows)
    reach = STANDARD_ERRORS * found.standard_error_points
    unknown = ", whose noise is unknown" if math.isnan(reach) else ""
    return LOSS.claim(
        about,
        f"{found.accuracy_percent:.2f} % against {found.float32_percent:.2f} % in float32: "
        f"{difference(found)} points over {fmt.plural(found.seeds, 'seed')}{unknown}.",
        holds=found.difference_points - reach > -MARGIN,
        fails=found.difference_points + reach < -MARGIN,
    )
