"""Question 3: the claims on the parts of an epoch and on the link follow the estimates."""

import pytest
import report_tables
from claim_study import claims, instrumented, set_time, with_times


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    return claims(tmp_path_factory.mktemp("study"), report_tables.make())


def test_the_parts_of_an_epoch_are_those_that_the_subtraction_with_its_noise_allows(example):
    # fast/ddp, 4 GPUs, b=32: 2.2 - 7.2 / 4 = 0.4 s, uncertain by 2 % of 2.2 and of 1.8: 0.08 s.
    claim = example["Q3.1-computing-fast-ddp"]
    assert claim.verdict == "supported"
    assert "With b\u00a0=\u00a032: 78 % to 85 % is computing, 15 % to 22 %" in claim.sentence
    # course/dp, b=32: 19.5 - 9.4 / 4 = 17.15 of 19.6 s.
    refuted = example["Q3.1-computing-course-dp"]
    assert refuted.verdict == "refuted" and "less than half of an epoch" in refuted.sentence
    # course/ddp: most with b=32, less than half with b=512.
    assert example["Q3.1-computing-course-ddp"].verdict == "undecided"


def test_a_larger_batch_communicates_less_more_or_neither(example, tmp_path):
    assert example["Q3.1-falls-fast-ddp"].verdict == "supported"
    assert example["Q3.1-falls-course-ddp"].verdict == "undecided"

    def change(timing):
        set_time(timing, ("fast", "ddp", 4, 2048), 0.62)

    # 0.62 - 1.24 / 4 = half of the epoch.
    claim = claims(tmp_path, with_times(change))["Q3.1-falls-fast-ddp"]
    assert claim.verdict == "refuted"
    assert "a larger, not a smaller, share" in claim.sentence


def test_estimates_that_disagree_widen_the_share_until_nothing_is_decided(tmp_path):
    def change(timing):
        set_time(timing, ("course", "ddp", 4, 512), 0.8)

    # By subtraction 0.8 - 1.5 / 4 = 53 % (± 3 %) with b=512 and 14 to 21 % with b=32, by the
    # instrument 1 %.
    tables = with_times(change)
    assert claims(tmp_path / "one", tables)["Q3.1-falls-course-ddp"].verdict == "refuted"
    both = instrumented(tables, {512: 0.008})
    claim = claims(tmp_path / "two", both)["Q3.1-falls-course-ddp"]
    assert claim.verdict == "undecided" and "1.0 % to 56 %" in claim.sentence


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
        assert "0.550 ± 0.105 s by subtraction, 0.100 s by leaving" in claim.sentence


def test_without_instruments_there_is_nothing_to_hold_the_subtraction_against(example):
    claim = example["Q3.1-estimates-course-ddp"]
    assert claim.verdict == "undecided"
    assert "a reading without communication" in claim.sentence


def test_without_any_estimate_the_parts_are_unknown(tmp_path):
    tables = report_tables.make()
    tables["communication"]["communication_seconds"] = None
    found = claims(tmp_path, tables)
    assert found["Q3.1-computing-fast-ddp"].verdict == "undecided"
    assert "no cell on several GPUs has an estimate" in found["Q3.1-computing-fast-ddp"].sentence


def test_the_use_of_the_link_is_told_beside_its_peak(example):
    # fast/ddp, 4 GPUs, b=32: 313 steps · 67.04 MB / 0.4 s = 52.5 GB/s.
    claim = example["Q3.2-link-fast-ddp"]
    assert claim.verdict == "supported"
    assert (
        "At most 52.5 GB/s, by subtraction without loading: fast/ddp, 4 GPUs, b\u00a0=\u00a032"
        in (claim.sentence)
    )
    assert claim.evidence[0].figures["estimates"] == 3


@pytest.mark.parametrize(
    ("utilization", "verdict", "words"),
    [
        (0.8, "refuted", "half or more of the link is used"),
        (1.4, "undecided", "within noise or above 100 % of the peak"),
        (None, "undecided", "no communication time is above 0"),
    ],
)
def test_another_use_of_the_link_is_another_verdict(tmp_path, utilization, verdict, words):
    tables = report_tables.make()
    tables["bandwidth"]["utilization"] = utilization
    claim = claims(tmp_path, tables)["Q3.2-link-fast-ddp"]
    assert claim.verdict == verdict and words in claim.sentence


def test_without_a_sweep_the_link_is_unknown(tmp_path):
    tables = report_tables.make()
    tables["bandwidth"][["utilization", "peak_gb_per_s"]] = None
    claim = claims(tmp_path, tables)["Q3.2-link-fast-ddp"]
    assert claim.verdict == "undecided"
    assert "the interconnect was not measured" in claim.sentence
