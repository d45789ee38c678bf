"""Part B: the claim on what int8 costs."""

import math

import pandas as pd
import pytest

from examples.claim_study import claims
from scaling.claims import part_b

STAGE = "weights+activations"


def loss(differences, error=0.1):
    """The claim on a stage that has these differences, seed by seed, to 60 % in float32."""
    rows = {"seed": range(len(differences)), "stage": STAGE, "difference_points": differences}
    table = pd.DataFrame(rows).assign(agreement_percent=99.0, standard_error_points=error)
    table["accuracy_percent"] = 60 + table["difference_points"]
    return claims(part_b.answer, {"quantization": table})[f"B-cost-{STAGE}"]


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
    assert loss(differences, error).verdict == verdict


def test_so_many_more_seeds_would_tell_the_cost():
    # 0.1 from a point: two errors of five seeds are 2 · 0.1 / √5 = 0.089, of four 0.1.
    assert "Noise between 2 seeds: 3 more would tell." in loss((-0.8, -1.0)).sentence
    assert "one seed unknown: more seeds would" in loss((-0.9,)).sentence
    assert "measure again" in loss((-0.1, -0.1), math.nan).sentence
