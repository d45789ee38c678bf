"""Part B: the claim on what int8 costs."""

import pandas as pd
import pytest

from examples.claim_study import claims
from scaling.claims import ranks_int8

STAGE = "weights+activations"


@pytest.mark.parametrize(
    ("differences", "verdict", "words"),
    [
        # Student's 12.706 · 0.00707 / √2 for two seeds that are 0.01 apart: 0.06.
        ((-0.85, -0.86), "supported", "59.14 % against 60.00 % in float32: −0.85 ± 0.06 points"),
        ((-0.8, -1.0), "unclear", "; needs more seeds."),
        ((-1.19, -1.21), "refuted", "−1.20 ± 0.13 points"),
        ((-0.9,), "unclear", "whose noise is unknown"),
    ],
)
def test_cost_is_judged_by_the_interval_over_networks(differences, verdict, words):
    """Of a stage that has these differences, seed by seed, to 60 % in float32."""
    rows = {"seed": range(len(differences)), "stage": STAGE, "difference_points": differences}
    table = pd.DataFrame(rows).assign(agreement_percent=99.0, mean_standard_error_points=0.01)
    table = table.assign(packed_bytes=1, compression=4)
    table["accuracy_percent"] = 60 + table["difference_points"]
    claim = claims(ranks_int8.int8, {"quantization": table})[f"B-cost-{STAGE}"]
    assert claim.verdict == verdict and words in claim.sentence
