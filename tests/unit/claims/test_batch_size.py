"""Question 1: claims on the batch size follow the times, the cost model and the traced steps."""

import pytest

from examples import report_tables
from examples.claim_study import claims, device_time, set_time, with_times


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    return claims(tmp_path_factory.mktemp("study"), report_tables.make())


def for_all_strategies(timing, batch, seconds, loader=0.0):
    for strategy in ("dp", "ddp"):
        set_time(timing, ("course", strategy, 1, batch), seconds, loader)


def test_a_larger_batch_is_faster_by_the_times_without_loading(example):
    # fast, 1 GPU: 7.2 s at batch 32, 1.24 s at 2048: 5.81 times.
    claim = example["Q1-faster-fast"]
    assert claim.verdict == "supported"
    assert "1.24 s against 7.20 s" in claim.sentence and "5.81× as fast" in claim.sentence
    figures = claim.evidence[0].figures
    assert (figures["smallest_batch_size"], figures["fast_batch_size"]) == (32, 2048)
    assert claim.evidence[0].file == "tables/example/timing.csv"
    # 3.329 GFLOP · 40,000 / 1.24 s / 797 TFLOP/s = 13 %.
    assert "13 % of the measured matrix product peak" in claim.sentence


def test_the_time_without_loading_is_not_believed_where_the_loader_sets_the_pace(example, tmp_path):
    # course: 50 % waiting at batch 512, 53 % at 2048, 52 % at 16384.
    claim = example["Q1-faster-course"]
    assert "3.50 s against 9.40 s with b\u00a0=\u00a032" in claim.sentence
    left_out = "Not compared, waiting for data half of their epoch or longer: b\u00a0=\u00a0"
    assert claim.sentence.endswith(f" {left_out}512, 2048, 16384.")

    def change(timing):
        for_all_strategies(timing, 128, 4.0, loader=2.1)

    alone = claims(tmp_path, with_times(change))["Q1-faster-course"]
    assert alone.verdict == "undecided"
    assert f"{left_out}128, 512, 2048, 16384." in alone.sentence


def test_where_the_smallest_batch_is_the_fastest_the_claim_is_refuted(tmp_path):
    def change(timing):
        for_all_strategies(timing, 32, 1.0)

    found = claims(tmp_path, with_times(change))
    claim = found["Q1-faster-course"]
    assert claim.verdict == "refuted"
    assert "no larger batch is faster" in claim.sentence
    assert (
        "1.00 s with b\u00a0=\u00a032; the next is 3.50 s with b\u00a0=\u00a0128" in claim.sentence
    )
    assert "Q1-fixed-course" not in found and "Q1-loading-course" not in found


def test_times_whose_ranges_overlap_decide_nothing(tmp_path):
    def change(timing):
        for_all_strategies(timing, 32, 3.55)

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
    ("steps", "verdict", "share", "busy"),
    [
        # 1250 steps of 7.5 ms less 20 of 70 ms save 7.975 s; of gaps 1250 · 5 ms - 20 · 10 ms.
        ({32: (0.0075, 0.0025), 2048: (0.07, 0.06)}, "supported", "76 %", "3.12 s"),
        # 1250 · 1 ms - 20 · 10 ms.
        ({32: (0.0075, 0.0065), 2048: (0.07, 0.06)}, "refuted", "13 %", "8.12 s"),
        # 1250 · 3.2 ms = 4 s, ± 1 %.
        ({32: (0.0075, 0.0043), 2048: (0.07, 0.07)}, "undecided", "50 %", "5.38 s"),
    ],
)
def test_the_gaps_between_kernels_explain_what_is_saved_or_do_not(
    tmp_path, steps, verdict, share, busy
):
    tables = report_tables.make() | {"device_time": device_time(steps)}
    claim = claims(tmp_path, tables)["Q1-gaps-course"]
    assert claim.verdict == verdict
    assert f"fewer gaps are {share} of the 7.97 s saved" in claim.sentence
    assert f"Kernels run for {busy} of it with b\u00a0=\u00a032 and for 1." in claim.sentence
    assert claim.evidence[0].file == "tables/example/device_time.csv"


def test_a_negative_gap_is_said_in_words_and_saves_nothing(tmp_path):
    steps = {32: (0.0075, 0.0065), 2048: (0.07, 0.08)}
    tables = report_tables.make() | {"device_time": device_time(steps)}
    claim = claims(tmp_path, tables)["Q1-gaps-course"]
    told = "in none that could be told (−14 %: the traced steps took longer than the timed ones)"
    assert told in claim.sentence
    # 1250 · 1 ms of 7.975 s, and not 20 · 10 ms more.
    assert claim.evidence[0].figures["share_explained"] == pytest.approx(1.25 / 7.975)
    assert claim.evidence[0].figures["fast_gap_seconds"] == pytest.approx(-0.01)


def test_without_a_saving_there_is_nothing_for_gaps_to_explain(tmp_path):
    # 1250 steps of 1 ms are 1.25 s, 20 of 70 ms 1.4 s.
    steps = {32: (0.001, 0.0005), 2048: (0.07, 0.06)}
    tables = report_tables.make() | {"device_time": device_time(steps)}
    claim = claims(tmp_path, tables)["Q1-gaps-course"]
    assert claim.verdict == "undecided" and "there is no saving" in claim.sentence


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

    # The shortest epoch is 3.0 s with 1.5 s of loading: 5.5 of 6.8 s.
    claim = claims(tmp_path, with_times(change))["Q1-loading-course"]
    assert claim.verdict == "refuted" and "81 % of the difference" in claim.sentence


def test_the_largest_batch_is_slower_for_the_reason_that_the_times_show(example, tmp_path):
    # 3.66 - 3.0 s, loading 1.9 - 1.5 s.
    assert example["Q1-slower-course"].verdict == "supported"
    assert "0.660 s longer, with 0.400 s more" in example["Q1-slower-course"].sentence

    def change(timing):
        for_all_strategies(timing, 16384, 3.66, loader=1.5)

    claim = claims(tmp_path, with_times(change))["Q1-slower-course"]
    assert claim.verdict == "refuted" and "not because of the wait for data" in claim.sentence

    def less(timing):
        for_all_strategies(timing, 16384, 3.66, loader=1.4)

    claim = claims(tmp_path, with_times(less))["Q1-slower-course"]
    assert "with 0.100 s less of waiting" in claim.sentence
    assert "Q1-slower-fast" not in example


def test_batches_that_take_the_same_time_are_no_error(tmp_path):
    def change(timing):
        for batch in (32, 128, 512, 2048, 16384):
            for_all_strategies(timing, batch, 3.0)

    found = claims(tmp_path, with_times(change))
    assert found["Q1-faster-course"].verdict == "undecided"
    assert not {"Q1-fixed-course", "Q1-loading-course", "Q1-slower-course"} & found.keys()
