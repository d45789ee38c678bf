"""Question 1: claims on the batch size follow the times, the cost model and the traced steps."""

import pytest
import report_tables
from claim_study import claims, device_time, set_time, with_times


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    return claims(tmp_path_factory.mktemp("study"), report_tables.make())


def for_all_strategies(timing, batch, seconds, loader=0.0):
    for strategy in ("dp", "ddp"):
        set_time(timing, ("course", strategy, 1, batch), seconds, loader)


def test_a_larger_batch_is_faster_by_the_times_without_loading(example):
    # course, 1 GPU: 9.8 - 0.4 s at batch 32, 3.02 - 1.6 s at 2048: 6.62 times.
    claim = example["Q1-faster-course"]
    assert claim.verdict == "supported"
    assert "1.42 s against 9.40 s" in claim.sentence and "6.62× as fast" in claim.sentence
    figures = claim.evidence[0].figures
    assert (figures["smallest_batch_size"], figures["fast_batch_size"]) == (32, 2048)
    assert claim.evidence[0].file == "tables/example/timing.csv"
    # 3.329 GFLOP · 40,000 / 1.42 s / 417 TFLOP/s = 22 %.
    assert "22 % of the measured matrix product peak" in claim.sentence


def test_where_the_smallest_batch_is_the_fastest_the_claim_is_refuted(tmp_path):
    def change(timing):
        for_all_strategies(timing, 32, 1.0)

    found = claims(tmp_path, with_times(change))
    claim = found["Q1-faster-course"]
    assert claim.verdict == "refuted"
    assert "no larger batch is faster" in claim.sentence
    assert (
        "1.00 s with b\u00a0=\u00a032; the next is 1.42 s with b\u00a0=\u00a02048" in claim.sentence
    )
    assert "Q1-gaps-course" not in found


def test_times_whose_ranges_overlap_decide_nothing(tmp_path):
    def change(timing):
        for_all_strategies(timing, 32, 1.43)

    claim = claims(tmp_path, with_times(change))["Q1-faster-course"]
    assert claim.verdict == "undecided"
    assert "not clearly faster" in claim.sentence and "within noise" in claim.sentence


def test_a_time_measured_once_decides_nothing(tmp_path):
    def change(timing):
        timing["count"] = 1

    found = claims(tmp_path, with_times(change))
    assert {one.verdict for one in found.values() if one.question == "Q1"} == {"undecided"}


def test_one_batch_size_is_no_evidence(tmp_path):
    tables = report_tables.make()
    tables["timing"] = tables["timing"][tables["timing"]["batch_size"] == 128]
    claim = claims(tmp_path, tables)["Q1"]
    assert claim.verdict == "undecided"
    assert "no recipe has times of two batch sizes" in claim.sentence


@pytest.mark.parametrize(
    ("low", "high", "verdict", "word"),
    [
        (0.004, 0.006, "supported", "is the cause"),
        (0.001, 0.002, "refuted", "is not the cause"),
        (0.001, 0.006, "undecided", "may be the cause"),
    ],
)
def test_the_interval_of_the_fixed_cost_decides(tmp_path, low, high, verdict, word):
    # fast, 1 GPU: 1250 - 20 steps fewer save 7.2 - 1.24 = 5.96 s; half of it is 2.4 ms a step.
    tables = report_tables.make()
    model = tables["cost_model"]
    fixed = (model["recipe"] == "fast") & (model["parameter"] == "fixed")
    model.loc[fixed, ["value", "low", "high"]] = [(low + high) / 2, low, high]
    claim = claims(tmp_path, tables)["Q1-fixed-fast"]
    assert claim.verdict == verdict and word in claim.sentence
    assert "1,230 fewer of them" in claim.sentence and "of the 5.96 s it saves" in claim.sentence


def test_without_a_cost_model_the_fixed_cost_is_unknown(tmp_path):
    tables = report_tables.make()
    tables["cost_model"] = tables["cost_model"][:0]
    claim = claims(tmp_path, tables)["Q1-fixed-fast"]
    assert claim.verdict == "undecided" and "no cost model could be fitted" in claim.sentence


@pytest.mark.parametrize(
    ("steps", "verdict", "share"),
    [
        # 1250 steps with 5 ms of gap less 20 with 10 ms: 6.05 of the 7.98 s saved.
        ({32: (0.0075, 0.0025), 2048: (0.07, 0.06)}, "supported", "76 %"),
        # 1250 · 1 ms - 20 · 10 ms = 1.05 s.
        ({32: (0.0075, 0.0065), 2048: (0.07, 0.06)}, "refuted", "13 %"),
    ],
)
def test_the_gaps_between_kernels_explain_what_is_saved_or_do_not(tmp_path, steps, verdict, share):
    tables = report_tables.make() | {"device_time": device_time(steps)}
    claim = claims(tmp_path, tables)["Q1-gaps-course"]
    assert claim.verdict == verdict
    assert f"fewer gaps are {share} of the 7.98 s saved" in claim.sentence
    assert claim.evidence[0].file == "tables/example/device_time.csv"


def test_gaps_that_differ_between_seeds_decide_nothing(tmp_path):
    # Around half: 3.2 ms · 1250 = 4 s of 7.98 s, ± 1 %.
    steps = {32: (0.0075, 0.0043), 2048: (0.07, 0.07)}
    tables = report_tables.make() | {"device_time": device_time(steps)}
    assert claims(tmp_path, tables)["Q1-gaps-course"].verdict == "undecided"


def test_gaps_that_were_not_traced_are_said_to_be_missing(example, tmp_path):
    assert example["Q1-gaps-course"].verdict == "undecided"
    assert "the device's time was not read" in example["Q1-gaps-course"].sentence
    traced = device_time({32: (1.0, 0.5), 2048: (1.0, 0.5)})
    traced[["step_seconds", "gap_seconds"]] = None
    traced["note"] = "a CPU runs no kernels"
    on_cpu = claims(tmp_path, report_tables.make() | {"device_time": traced})["Q1-gaps-course"]
    assert on_cpu.verdict == "undecided" and "a CPU runs no kernels" in on_cpu.sentence


def test_the_loader_is_the_cause_where_most_of_the_saving_is_waiting(example, tmp_path):
    assert example["Q1-loading-course"].verdict == "supported"

    def change(timing):
        for_all_strategies(timing, 32, 9.8, loader=7.0)

    # Without loading 2.8 - 1.42 s, loading 7 - 1.6 = 5.4 of 6.78 s.
    claim = claims(tmp_path, with_times(change))["Q1-loading-course"]
    assert claim.verdict == "refuted" and "80 % of the difference" in claim.sentence


def test_the_largest_batch_is_slower_for_the_reason_that_the_times_show(example, tmp_path):
    # 3.66 - 3.0 s, loading 1.9 - 1.5 s.
    assert example["Q1-slower-course"].verdict == "supported"
    assert "0.400 s of the 0.660 s" in example["Q1-slower-course"].sentence

    def change(timing):
        for_all_strategies(timing, 16384, 3.66, loader=1.5)

    claim = claims(tmp_path, with_times(change))["Q1-slower-course"]
    assert claim.verdict == "refuted" and "not because of the wait for data" in claim.sentence
    assert "Q1-slower-fast" not in example
