"""Question 3: the claims on the parts of an epoch and on the link follow the estimates."""

import pandas as pd
import pytest

from examples import report_tables
from examples.claim_study import claims, instrumented, set_time, with_times


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    return claims(tmp_path_factory.mktemp("study"), report_tables.make())


def shares(claim, cell, part):
    """The lowest and highest share of the epoch, of the smallest or the largest batch."""
    figures = claim.evidence[0].figures
    return [figures[f"{cell}_{part}_share_{end}"] for end in ("low", "high")]


def slow_at_2048(timing):
    """1.24 / 4 = 0.31 s of computing, ± 1 %, are half of the epoch."""
    set_time(timing, ("fast", "ddp", 4, 2048), 0.62)


def test_an_epoch_is_told_apart_into_computing_communication_loading_and_the_rest(example):
    # fast/ddp, 4 GPUs, b=32: 7.2 / 4 = 1.8 of 2.2 s, ± 1 %; 2.2 - 1.8 = 0.4 s, uncertain by 2 % of
    # 2.2 and of 1.8.
    claim = example["Q3.1-computing-fast-ddp"]
    assert claim.verdict == "supported"
    assert shares(claim, "smallest", "computing") == pytest.approx([0.81, 0.826], abs=1e-3)
    assert shares(claim, "smallest", "communication") == pytest.approx([0.145, 0.218], abs=1e-3)
    # course/dp, b=32: 9.4 / 4 = 2.35 of 19.6 s.
    refuted = example["Q3.1-computing-course-dp"]
    assert refuted.verdict == "refuted"
    assert shares(refuted, "smallest", "computing") == pytest.approx([0.12, 0.12], abs=2e-3)
    # course/ddp, b=512: 0.4 of 0.9 s are waiting for data.
    figures = example["Q3.1-computing-course-ddp"].evidence[0].figures
    assert figures["largest_loading_share"] == pytest.approx(4 / 9)


def test_instruments_are_believed_before_the_subtraction(tmp_path):
    # By subtraction 14 to 21 % with b=32, 12 to 16 % with b=512; read 0.31 of 3.1 s and 0.009 of
    # 0.9 s, the traced kernels 0.248 and 0.018 s.
    tables = instrumented(report_tables.make(), {32: 0.31, 512: 0.009})
    both = instrumented(tables, {32: 0.248, 512: 0.018}, estimate="profiler")
    claim = claims(tmp_path, both)["Q3.1-falls-course-ddp"]
    assert claim.verdict == "supported"
    assert shares(claim, "largest", "communication") == pytest.approx([0.01, 0.02])
    assert shares(claim, "smallest", "communication") == pytest.approx([0.08, 0.1])


@pytest.mark.parametrize(
    ("seconds", "estimate", "spread", "small", "large"),
    [
        # The noise of a lone instrument is not taken to be none: each half to double.
        ({32: 0.155, 512: 0.03}, "profiler", None, (0.025, 0.1), (1 / 60, 1 / 15)),
        # 0.31 and 0.009 s, each ± 0.009 s, of 3.1 and 0.9 s; the lone instrument's half to double.
        ({32: 0.31, 512: 0.009}, "without_communication", 0.009, (0.0485, 0.2058), (0, 0.04)),
        # What may be none at all, 0.009 ± 0.018 s of 0.9 s, is doubled on either side.
        ({32: 0.31, 512: 0.009}, "without_communication", 0.018, (0.0471, 0.2116), (-0.005, 0.06)),
    ],
)
def test_a_share_has_the_noise_of_its_instrument(tmp_path, seconds, estimate, spread, small, large):
    tables = instrumented(report_tables.make(), seconds, estimate=estimate, spread=spread)
    claim = claims(tmp_path, tables)["Q3.1-falls-course-ddp"]
    assert shares(claim, "smallest", "communication") == pytest.approx(small, abs=1e-4)
    assert shares(claim, "largest", "communication") == pytest.approx(large, abs=1e-4)


def test_a_larger_batch_communicates_less_more_or_neither(example, tmp_path):
    assert example["Q3.1-falls-fast-ddp"].verdict == "supported"
    assert example["Q3.1-falls-course-ddp"].verdict == "undecided"
    found = claims(tmp_path, with_times(slow_at_2048))
    assert found["Q3.1-falls-fast-ddp"].verdict == "refuted"
    # Computing around half of an epoch decides nothing.
    assert found["Q3.1-computing-fast-ddp"].verdict == "undecided"


# course/ddp, 4 GPUs: 2.9 - 9.4 / 4 = 0.55 s (± 0.105) with b=32, 1.05 - 3.5 / 4 = 0.175 (± 0.0385)
# with 128, 0.5 - 1.5 / 4 = 0.125 (± 0.0175) with 512.
@pytest.mark.parametrize(
    ("seconds", "options", "verdict", "differ"),
    [
        ({32: 0.5, 128: 0.15, 512: 0.12}, {}, "supported", 0),
        ({32: 0.1, 128: 0.02, 512: 0.12}, {}, "refuted", 2),
        ({32: 0.1, 128: 0.15, 512: 0.12}, {}, "undecided", 1),
        # The range of the instrument's repeats is part of what the two may differ by.
        ({32: 0.4, 128: 0.14, 512: 0.12}, {"spread": 0.05}, "supported", 0),
        # Traced kernels stand in where communication cannot be left out.
        ({32: 0.1, 128: 0.02}, {"estimate": "profiler"}, "refuted", 2),
    ],
)
def test_subtraction_is_held_against_an_instrument(tmp_path, seconds, options, verdict, differ):
    tables = instrumented(report_tables.make(), seconds, **options)
    claim = claims(tmp_path, tables)["Q3.1-estimates-course-ddp"]
    figures = claim.evidence[0].figures
    assert claim.verdict == verdict
    assert (figures["differ"], figures["cells"]) == (differ, len(seconds))
    if verdict != "supported":
        assert figures["worst_subtraction_seconds"] == pytest.approx(0.55)
        assert figures["worst_resolution_seconds"] == pytest.approx(0.105)
        assert figures["worst_instrument_seconds"] == pytest.approx(0.1)


def test_what_has_no_estimate_is_undecided(example, tmp_path):
    assert example["Q3.1-estimates-course-ddp"].verdict == "undecided"
    tables = report_tables.make()
    tables["communication"]["communication_seconds"] = None
    tables["bandwidth"][["utilization", "peak_gb_per_s"]] = None
    found = claims(tmp_path, tables)
    for id in ("Q3.1-computing", "Q3.1-falls", "Q3.2-epoch", "Q3.2-travelling"):
        assert found[f"{id}-fast-ddp"].verdict == "undecided"
        assert found[f"{id}-fast-ddp"].evidence[0].figures == {}


def traced(utilization):
    """The study with the bandwidth of fast/ddp traced, at this share of the peak with b=32."""
    tables = report_tables.make()
    own = tables["bandwidth"]
    rows = own[(own["recipe"] == "fast") & (own["gpus"] == 4) & (own["batch_size"] == 32)]
    read = rows.head(1).assign(estimate="profiler", utilization=utilization)
    read["bandwidth_gb_per_s"] = utilization * read["peak_gb_per_s"]
    return tables | {"bandwidth": pd.concat([own, read], ignore_index=True)}


# fast/ddp, 4 GPUs, b=32: 313 steps · 67.04 MB = 21.0 GB in 2.2 s are 9.5 GB/s, ± 2 %.
@pytest.mark.parametrize(
    ("peak", "verdict"), [(244, "supported"), (10, "refuted"), (19.1, "undecided")]
)
def test_the_use_of_the_link_over_an_epoch_needs_no_estimate(tmp_path, peak, verdict):
    tables = report_tables.make()
    tables["bandwidth"]["peak_gb_per_s"] = float(peak)
    claim = claims(tmp_path, tables)["Q3.2-epoch-fast-ddp"]
    assert claim.verdict == verdict
    assert claim.evidence[0].figures["most_used"] == pytest.approx(9.538 / peak, rel=1e-3)


@pytest.mark.parametrize(("utilization", "verdict"), [(0.8, "supported"), (0.3, "refuted")])
def test_a_trace_tells_how_fast_gradients_travel(tmp_path, utilization, verdict):
    claim = claims(tmp_path, traced(utilization))["Q3.2-travelling-fast-ddp"]
    assert claim.verdict == verdict
    figures = claim.evidence[0].figures
    assert (figures["estimate"], figures["best_utilization"]) == ("profiler", utilization)


def test_a_subtraction_cannot_show_that_gradients_travel_slowly(example):
    # 21.0 GB in 0.4 s.
    claim = example["Q3.2-travelling-fast-ddp"]
    assert claim.verdict == "undecided"
    assert claim.evidence[0].figures["best_bandwidth_gb_per_s"] == pytest.approx(52.5, abs=0.05)


def test_more_than_the_peak_is_no_bandwidth(tmp_path):
    tables = report_tables.make()
    tables["bandwidth"]["utilization"] = 1.4
    assert claims(tmp_path, tables)["Q3.2-travelling-fast-ddp"].verdict == "undecided"
