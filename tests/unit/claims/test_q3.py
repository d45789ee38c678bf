"""Question 3: the claims on the parts of an epoch and on the link follow the estimates."""

import pytest

from examples.claim_study import claims, study
from scaling.claims import q3

B = "b\u00a0=\u00a0"


@pytest.mark.parametrize(
    ("shares", "verdict"),
    [
        ((0.4, 0.2, 0.1, 0.3), "supported"),
        # 40 to 60 %, as 20 % are not known.
        ((0.3, 0.1, 0.4, 0.2), "unclear"),
        ((0.3, 0.1, 0.6, 0.0), "refuted"),
        ((0.3, None, None, 0.7), "not measured"),
    ],
)
def test_computing_is_what_the_parts_of_an_epoch_say(shares, verdict):
    tables = study()
    names = ["utilization", "slower_share", "idle_share", "unknown_share"]
    parts = dict(zip(names, shares, strict=True)) | {"communication_share": 0, "loading_share": 0}
    tables["utilization"] = tables["timing"].assign(**parts)
    claim = claims(q3.parts, tables)["Q3.1-computing-plain-ddp"]
    assert claim.verdict == verdict
    if verdict == "refuted":
        assert f"{B}2048: 40 % computing, 60 % GPU idle." in claim.sentence


@pytest.mark.parametrize(
    ("estimate", "utilizations", "verdict", "best"),
    [
        ("profiler", (0.6, 0.8), "supported", 80),
        ("profiler", (0.2, 0.8), "in part", 80),
        ("profiler", (0.2, 0.3), "refuted", 30),
        # A subtraction counts more than communication, so it cannot show that gradients are slow.
        ("subtraction_without_loading", (0.2, 0.3), "unclear", 30),
        # More than the peak is no bandwidth.
        ("profiler", (0.2, 1.4), "refuted", 20),
    ],
)
def test_each_cell_tells_how_much_of_the_link_is_used(estimate, utilizations, verdict, best):
    """On a link of 100 GB/s between 2 GPUs, used to these shares with batch 32, 64, …"""
    timing = study()["timing"]
    rows = timing[timing["gpus"] == 2].head(len(utilizations))
    rows = rows.assign(estimate=estimate, peak_gb_per_s=100.0, utilization=utilizations)
    tables = {"bandwidth": rows.assign(bandwidth_gb_per_s=0.0)}
    claim = claims(q3.bandwidth, tables)["Q3.2-travelling-plain-dp"]
    assert claim.verdict == verdict and f"GB/s ({best} %) with" in claim.sentence
