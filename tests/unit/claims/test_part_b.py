"""Part B: the claim on what int8 costs."""

import math

import pandas as pd
import pytest

from examples.claim_study import claims
from scaling.claims import part_b

STAGE = "weights+activations"


@pytest.mark.parametrize(
    ("differences", "error", "verdict", "words"),
    [
        # Two seeds: the error of the mean is √2 · 0.1 / 2 = 0.07.
        ((-0.8, -0.9), 0.1, "supported", "59.15 % against 60.00 % in float32: −0.85 ± 0.14 points"),
        # 0.1 from a point: two errors of five seeds are 2 · 0.1 / √5 = 0.089, of four 0.1.
        ((-0.8, -1.0), 0.1, "unclear", "; more seeds would tell."),
        ((-1.1, -1.3), 0.1, "refuted", "−1.20 ± 0.14 points"),
        ((-0.9,), 0.1, "unclear", "; more seeds would tell."),
        ((-0.1, -0.1), math.nan, "unclear", "whose noise is unknown"),
    ],
)
def test_the_cost_is_judged_by_two_standard_errors(differences, error, verdict, words):
    """Of a stage that has these differences, seed by seed, to 60 % in float32."""
    rows = {"seed": range(len(differences)), "stage": STAGE, "difference_points": differences}
    table = pd.DataFrame(rows).assign(agreement_percent=99.0)
    table["mean_standard_error_points"] = error / len(differences) ** 0.5
    table = table.assign(float32_bytes=4, packed_bytes=1)
    table["accuracy_percent"] = 60 + table["difference_points"]
    claim = claims(part_b.answer, {"quantization": table})[f"B-cost-{STAGE}"]
    assert claim.verdict == verdict and words in claim.sentence
