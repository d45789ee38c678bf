"""Question 2: the claims on scaling follow the ratios of the times."""

import pytest

from examples.claim_study import claims, set_time, study
from scaling.claims import q2


def changed(change=None):
    return claims(q2.answer, study(change))


@pytest.mark.parametrize(
    ("id", "seconds", "verdict", "cells"),
    [
        # On 4 GPUs 2.93 at least; plain/dp takes 19.6 s with batch 32, one GPU 9.8 s.
        ("Q2-faster-fast-ddp", {}, "supported", ""),
        ("Q2-faster-plain-dp", {}, "in part", "Not for b = 32, 128, 2048; unclear for 512"),
        # 1.24 / 1.25, each ± 2 %.
        (
            "Q2-faster-fast-ddp",
            {(4, 2048): 1.25},
            "in part",
            "for b = 32, 128, 512; unclear for 2048",
        ),
    ],
)
def test_scaling_is_judged_by_the_ranges_of_speedups(id, seconds, verdict, cells):
    def change(timing):
        for cell, time in seconds.items():
            set_time(timing, ("fast", "ddp", *cell), time)

    claim = changed(change)[id]
    assert claim.verdict == verdict and claim.configuration.endswith("4 GPUs")
    assert cells in claim.sentence.replace("\u00a0", " ")
