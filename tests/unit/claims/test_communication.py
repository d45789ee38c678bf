"""Question 3: the claims on the parts of an epoch and on the link follow the estimates."""

import pandas as pd
import pytest

from examples import report_tables
from examples.claim_study import claims, instrumented, set_time, with_times


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    return claims(tmp_path_factory.mktemp("study"), report_tables.make())


def test_an_epoch_is_told_apart_into_computing_communication_loading_and_the_rest(example):
    # fast/ddp, 4 GPUs, b=32: 7.2 / 4 = 1.8 of 2.2 s, ± 1 %; 2.2 - 1.8 = 0.4 s, uncertain by 2 % of
    # 2.2 and of 1.8.
    claim = example["Q3.1-computing-fast-ddp"]
    assert claim.verdict == "supported"
    assert (
        "With b\u00a0=\u00a032: 81 % to 83 % is computing as one GPU does it, 15 % to 22 % comm"
        in (claim.sentence)
    )
    # course/dp, b=32: 9.4 / 4 = 2.35 of 19.6 s.
    refuted = example["Q3.1-computing-course-dp"]
    assert refuted.verdict == "refuted" and "not always most of an epoch" in refuted.sentence
    assert "12 % is computing" in refuted.sentence
    # course/ddp, b=512: 1.5 / 4 = 0.375 of 0.9 s, 0.4 s of them waiting for data.
    assert "44 % waiting for data" in example["Q3.1-computing-course-ddp"].sentence


def test_computing_around_half_of_an_epoch_decides_nothing(tmp_path):
    def change(timing):
        set_time(timing, ("fast", "ddp", 4, 2048), 0.62)

    # 1.24 / 4 = 0.31, ± 1 %.
    claim = claims(tmp_path, with_times(change))["Q3.1-computing-fast-ddp"]
    assert claim.verdict == "undecided" and "50 % is computing" in claim.sentence


def test_instruments_are_believed_before_the_subtraction(tmp_path):
    # By subtraction 14 to 21 % with b=32, 12 to 16 % with b=512; read 0.31 of 3.1 s and 0.009 of
    # 0.9 s, the traced kernels 0.248 and 0.018 s.
    tables = instrumented(report_tables.make(), {32: 0.31, 512: 0.009})
    both = instrumented(tables, {32: 0.248, 512: 0.018}, estimate="profiler")
    found = claims(tmp_path, both)
    assert found["Q3.1-falls-course-ddp"].verdict == "supported"
    assert "1.0 % to 2.0 % with b\u00a0=\u00a0512 and 8.0 % to 10 %" in (
        found["Q3.1-falls-course-ddp"].sentence
    )
    assert "none of these" in found["Q3.1-computing-course-ddp"].sentence


def test_the_noise_of_a_lone_instrument_is_not_taken_to_be_none(tmp_path):
    # 5.0 % and 3.3 % of the epoch, each half to double.
    tables = instrumented(report_tables.make(), {32: 0.155, 512: 0.03}, estimate="profiler")
    claim = claims(tmp_path, tables)["Q3.1-falls-course-ddp"]
    assert claim.verdict == "undecided"
    assert "1.7 % to 6.7 % with b\u00a0=\u00a0512 and 2.5 % to 10 %" in claim.sentence


def test_a_larger_batch_communicates_less_more_or_neither(example, tmp_path):
    assert example["Q3.1-falls-fast-ddp"].verdict == "supported"
    assert example["Q3.1-falls-course-ddp"].verdict == "undecided"

    def change(timing):
        set_time(timing, ("fast", "ddp", 4, 2048), 0.62)

    # 0.62 - 1.24 / 4 = half of the epoch.
    claim = claims(tmp_path, with_times(change))["Q3.1-falls-fast-ddp"]
    assert claim.verdict == "refuted"
    assert "a larger, not a smaller, share" in claim.sentence


# course/ddp, 4 GPUs: 2.9 - 9.4 / 4 = 0.55 s (± 0.105) with b=32, 1.05 - 3.5 / 4 = 0.175 (± 0.0385)
# with 128, 0.5 - 1.5 / 4 = 0.125 (± 0.0175) with 512.
@pytest.mark.parametrize(
    ("seconds", "verdict", "words"),
    [
        ({32: 0.5, 128: 0.15, 512: 0.12}, "supported", "in all of 3 cells"),
        ({32: 0.1, 128: 0.02, 512: 0.12}, "refuted", "in 2 of 3 cells"),
        ({32: 0.1, 128: 0.15, 512: 0.12}, "undecided", "but not in 1 of 3 cells"),
    ],
)
def test_subtraction_is_held_against_leaving_communication_out(tmp_path, seconds, verdict, words):
    tables = instrumented(report_tables.make(), seconds)
    claim = claims(tmp_path, tables)["Q3.1-estimates-course-ddp"]
    assert claim.verdict == verdict and words in claim.sentence
    if verdict != "supported":
        assert "0.550 ± 0.105 s by subtraction, 0.100 s by “without comm" in claim.sentence


def test_the_range_of_an_instruments_repeats_is_part_of_what_the_two_may_differ_by(tmp_path):
    tables = instrumented(report_tables.make(), {32: 0.4, 128: 0.14, 512: 0.12}, spread=0.05)
    claim = claims(tmp_path, tables)["Q3.1-estimates-course-ddp"]
    assert claim.verdict == "supported"
    assert "0.400 ± 0.0500 s by “without communication”" in claim.sentence


def test_the_range_of_repeats_is_part_of_an_instruments_share(tmp_path):
    # 0.31 and 0.009 s, each ± 0.009 s, of 3.1 and 0.9 s; the lone instrument's half to double.
    tables = instrumented(report_tables.make(), {32: 0.31, 512: 0.009}, spread=0.009)
    claim = claims(tmp_path, tables)["Q3.1-falls-course-ddp"]
    assert "0 % to 4.0 % with b\u00a0=\u00a0512 and 4.9 % to 21 %" in claim.sentence


def test_a_share_that_may_be_none_at_all_is_only_bounded(tmp_path):
    # 0.009 ± 0.018 s of 0.9 s.
    tables = instrumented(report_tables.make(), {32: 0.31, 512: 0.009}, spread=0.018)
    claim = claims(tmp_path, tables)["Q3.1-falls-course-ddp"]
    assert "communication, at most 6.0 % with b\u00a0=\u00a0512" in claim.sentence


def test_traced_kernels_stand_in_where_communication_cannot_be_left_out(tmp_path):
    tables = instrumented(report_tables.make(), {32: 0.1, 128: 0.02}, estimate="profiler")
    claim = claims(tmp_path, tables)["Q3.1-estimates-course-ddp"]
    assert claim.verdict == "refuted"
    assert "0.550 ± 0.105 s by subtraction, 0.100 s by “profiler”" in claim.sentence


def test_without_instruments_there_is_nothing_to_hold_the_subtraction_against(example):
    claim = example["Q3.1-estimates-course-ddp"]
    assert claim.verdict == "undecided"
    assert "the reading of an instrument" in claim.sentence


def test_without_any_estimate_the_parts_are_unknown(tmp_path):
    tables = report_tables.make()
    tables["communication"]["communication_seconds"] = None
    found = claims(tmp_path, tables)
    assert found["Q3.1-computing-fast-ddp"].verdict == "undecided"
    assert "no cell on several GPUs has an estimate" in found["Q3.1-computing-fast-ddp"].sentence


def traced(utilization):
    """The study with the bandwidth of fast/ddp traced, at this share of the peak with b=32."""
    tables = report_tables.make()
    own = tables["bandwidth"]
    rows = own[(own["recipe"] == "fast") & (own["gpus"] == 4) & (own["batch_size"] == 32)]
    read = rows.head(1).assign(estimate="profiler", utilization=utilization)
    read["bandwidth_gb_per_s"] = utilization * read["peak_gb_per_s"]
    return tables | {"bandwidth": pd.concat([own, read], ignore_index=True)}


def test_the_use_of_the_link_over_an_epoch_needs_no_estimate(example, tmp_path):
    # fast/ddp, 4 GPUs, b=32: 313 steps · 67.04 MB = 21.0 GB in 2.2 s are 9.5 of 244 GB/s.
    claim = example["Q3.2-epoch-fast-ddp"]
    assert claim.verdict == "supported"
    assert "at most 3.9 % of the 244 GB/s measured: 21.0 GB in 2.20 s" in claim.sentence
    slow = report_tables.make()
    slow["bandwidth"]["peak_gb_per_s"] = 10.0
    refuted = claims(tmp_path / "slow", slow)["Q3.2-epoch-fast-ddp"]
    assert refuted.verdict == "refuted" and "half or more of the link" in refuted.sentence
    # 9.53 GB/s ± 2 % around half of 19.1.
    slow["bandwidth"]["peak_gb_per_s"] = 19.1
    assert claims(tmp_path / "even", slow)["Q3.2-epoch-fast-ddp"].verdict == "undecided"


@pytest.mark.parametrize(
    ("utilization", "verdict", "words"),
    [(0.8, "supported", "at least half of the link"), (0.3, "refuted", "less than half of the")],
)
def test_a_trace_tells_how_fast_gradients_travel(tmp_path, utilization, verdict, words):
    claim = claims(tmp_path, traced(utilization))["Q3.2-travelling-fast-ddp"]
    assert claim.verdict == verdict and words in claim.sentence
    assert f"{100 * utilization:.0f} % of the 244 GB/s" in claim.sentence
    assert "by “profiler” (waiting for the slowest GPU counted)" in claim.sentence


def test_a_subtraction_cannot_show_that_gradients_travel_slowly(example):
    # 21.0 GB in 0.4 s.
    claim = example["Q3.2-travelling-fast-ddp"]
    assert claim.verdict == "undecided"
    assert "52.5 GB/s or 21 % of the 244 GB/s measured with b\u00a0=\u00a032" in claim.sentence


def test_more_than_the_peak_is_no_bandwidth(tmp_path):
    tables = report_tables.make()
    tables["bandwidth"]["utilization"] = 1.4
    claim = claims(tmp_path, tables)["Q3.2-travelling-fast-ddp"]
    assert claim.verdict == "undecided" and "how fast gradients travel cannot be said" in (
        claim.sentence
    )


def test_without_a_sweep_the_link_is_unknown(tmp_path):
    tables = report_tables.make()
    tables["bandwidth"][["utilization", "peak_gb_per_s"]] = None
    found = claims(tmp_path, tables)
    assert found["Q3.2-epoch-fast-ddp"].verdict == "undecided"
    assert "the interconnect was not measured" in found["Q3.2-epoch-fast-ddp"].sentence
    assert found["Q3.2-travelling-fast-ddp"].verdict == "undecided"
