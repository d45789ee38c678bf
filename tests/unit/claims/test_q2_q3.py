"""Questions 2 and 3: claims on speedups, on the parts of an epoch and on the link."""

import pytest

from examples.claim_study import claims, study
from examples.records import timing_row
from scaling.claims import q1_to_q3

ALONE = {32: 9.8, 128: 4.0, 512: 3.0}


def of(*seconds):
    """Cells on one and two GPUs, each ± 2 %."""
    two = dict(zip(ALONE, seconds, strict=True))
    times = [(gpus, *own) for gpus, found in ((1, ALONE), (2, two)) for own in found.items()]
    return study(*(timing_row(gpus, b, own, spread=own / 50) for gpus, b, own in times))


@pytest.mark.parametrize(
    ("seconds", "verdict", "cells"),
    [
        ((5.6, 2.2, 1.5), "supported", ""),
        ((19.0, 5.2, 2.97), "in part", "Not for b = 32, 128; unclear for 512"),
        ((5.6, 2.2, 2.95), "in part", "Held for b = 32, 128; unclear for 512"),
    ],
)
def test_scaling_is_judged_by_the_ranges_of_speedups(seconds, verdict, cells):
    claim = claims(q1_to_q3.speedups, of(*seconds))["Q2-faster-plain-ddp"]
    assert claim.verdict == verdict and claim.configuration.endswith("2 GPUs")
    assert cells in claim.sentence.replace("\u00a0", " ")


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
    names = ["utilization", "slower_share", "idle_share", "unknown_share"]
    parts = dict(zip(names, shares, strict=True)) | {"communication_share": 0, "loading_share": 0}
    used = {"utilization": of(5.6, 2.2, 1.5)["timing"].assign(**parts)}
    claim = claims(q1_to_q3.parts, used)["Q3.1-computing-plain-ddp"]
    assert claim.verdict == verdict
    if verdict == "refuted":
        assert "b\u00a0=\u00a0512: 40 % computing, 60 % GPU idle." in claim.sentence


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
    """On a link of 100 GB/s between 2 GPUs, used to these shares with batch 32 and 128."""
    timing = of(5.6, 2.2, 1.5)["timing"]
    rows = timing[timing["gpus"] == 2].head(len(utilizations))
    rows = rows.assign(estimate=estimate, peak_gb_per_s=100.0, utilization=utilizations)
    tables = {"bandwidth": rows.assign(bandwidth_gb_per_s=0.0)}
    claim = claims(q1_to_q3.bandwidth, tables)["Q3.2-travelling-plain-ddp"]
    assert claim.verdict == verdict and f"GB/s ({best} %) with" in claim.sentence
