"""Part B: claims on what int8 costs, and on its exactness."""

import math

import pandas as pd
import pytest

from scaling.claims import quantization
from scaling.claims.claim_tables import ClaimTables

STAGE = "weights+activations"


def claims(differences, error=0.1, differing=0):
    """The claims of a stage that has these differences, seed by seed, to 60 % in float32."""
    rows = {"seed": range(len(differences)), "stage": STAGE, "difference_points": differences}
    table = pd.DataFrame(rows).assign(agreement_percent=99.0, standard_error_points=error)
    table["accuracy_percent"] = 60 + table["difference_points"]
    table = table.assign(logits_compared=1000, logits_differing=differing)
    found = quantization.claims(ClaimTables("demo", {"quantization": table}))
    return {claim.kind: claim for claim in found}


@pytest.mark.parametrize(
    ("differences", "error", "verdict"),
    [
        # Two seeds: the error of the mean is √2 · 0.1 / 2 = 0.07.
        ((-0.8, -0.9), 0.1, "supported"),
        ((-0.8, -1.0), 0.1, "unclear"),
        ((-1.1, -1.3), 0.1, "refuted"),
        ((-0.1, -0.1), math.nan, "unclear"),
    ],
)
def test_the_cost_is_judged_by_two_standard_errors(differences, error, verdict):
    claim = claims(differences, error)["B-cost"]
    assert (claim.verdict, claim.configuration) == (verdict, STAGE)


def test_so_many_more_seeds_would_tell_the_cost():
    # 0.1 from a point: two errors of five seeds are 2 · 0.1 / √5 = 0.089, of four 0.1.
    assert "Noise between 2 seeds: 3 more would tell." in claims((-0.8, -1.0))["B-cost"].sentence
    assert "one seed unknown: more seeds would" in claims((-0.9,))["B-cost"].sentence
    assert "measure again" in claims((-0.1, -0.1), math.nan)["B-cost"].sentence


def test_one_logit_that_differs_refutes_exactness():
    assert claims([0.0])["B-exact"].verdict == "supported"
    found = claims([0.0, 0.1], differing=1)["B-exact"]
    assert (found.verdict, found.sentence) == ("refuted", "2 of 2,000 logits differ.")
