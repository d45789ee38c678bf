"""The sentences of the summary: their numbers, their sources, what they admit not to know."""

import pandas as pd
import pytest
import quantization_example
import report_tables
from claim_study import instrumented

from scaling import findings, large_batch, noise
from scaling import report_format as fmt
from scaling.communication import communication
from scaling.result_tables import StudyTables, read_study
from unit.records import timing_row, timing_table


def study(tmp_path, tables: dict[str, pd.DataFrame]) -> StudyTables:
    report_tables.write(tmp_path, tables)
    shared = tmp_path / "tables"
    own = shared / report_tables.STUDY
    return read_study(report_tables.STUDY, own, shared, tmp_path / "manifest.json")


@pytest.fixture(scope="module")
def example(tmp_path_factory) -> StudyTables:
    return study(tmp_path_factory.mktemp("study"), report_tables.make())


def only(tables: dict[str, pd.DataFrame], **columns: object) -> dict[str, pd.DataFrame]:
    """The tables with just the cells that have these values."""
    kept = {}
    for name, table in tables.items():
        for column, value in columns.items():
            if column in table and name not in ("interconnect", "interconnect_fit"):
                table = table[table[column] == value]
        kept[name] = table
    return kept


def test_the_outcome_counts_every_status(example):
    assert findings.outcome(example).text == (
        "Of 45 cells, 37 ok, 3 oom, 3 infeasible, 1 timeout, 1 diverged."
    )


def test_the_fastest_cell_comes_with_its_range_and_what_is_within_noise(example):
    found = findings.fastest(example)
    assert found.text == (
        "The shortest epoch took 0.320 s (0.314–0.326 s over 9 epochs): "
        "fast/ddp, 4 GPUs, b\u00a0=\u00a0512. "
        "Within noise of it: fast/ddp, 4 GPUs, b\u00a0=\u00a02048 (0.330 s)."
    )
    assert found.source == (
        "timing.csv: fast/ddp, 4 GPUs, b\u00a0=\u00a0512; fast/ddp, 4 GPUs, b\u00a0=\u00a02048"
    )


def test_a_fast_cell_that_diverged_does_not_count(tmp_path):
    tables = report_tables.make()
    tables["timing"].loc[tables["timing"]["epoch_seconds"] == 0.32, "status"] = "diverged"
    assert "0.330 s" in findings.fastest(study(tmp_path, tables)).text


def test_a_single_measurement_is_called_one(tmp_path):
    tables = only(report_tables.make(), batch_size=128)
    tables["timing"]["count"] = 1
    found = findings.fastest(study(tmp_path, tables)).text
    assert "over 1 epoch)" in found
    assert found.endswith("It was measured once, so its spread is unknown.")


def test_the_best_speedup_names_efficiency_and_doubt(example):
    # fast/ddp, batch 512: 1.32 / 0.32 = 4.125 on 4 GPUs.
    found = findings.best_speedup(example).text
    assert found.startswith("The best speedup is 4.12× (3.96–4.29) on 4 GPUs, an efficiency of 103")
    assert "above its 4 GPUs, within noise: see the audit" in found
    # course/dp: 128 and 2048 on 2 GPUs, 512 on 4.
    assert "3 of 22 cells on several GPUs cannot be told from one GPU" in found


def test_a_speedup_that_is_all_above_the_gpus_is_not_called_noise(tmp_path):
    tables = report_tables.make()
    above = tables["speedup"]["speedup"] > tables["speedup"]["gpus"]
    tables["speedup"].loc[above, "speedup_min"] = 4.01
    found = findings.best_speedup(study(tmp_path, tables)).text
    assert "above its 4 GPUs: see the audit" in found


def test_the_best_efficiency_is_named_when_another_cell_has_it(tmp_path):
    tables = only(report_tables.make(), recipe="course", strategy="ddp", batch_size=128)
    # 4.0 / 2.2 = 1.82 on 2 GPUs is 91 %; 4.0 / 1.25 = 3.2 on 4 is 80 %.
    assert findings.best_speedup(study(tmp_path, tables)).text == (
        "The best speedup is 3.20× (3.07–3.33) on 4 GPUs, an efficiency of 80 %: "
        "course/ddp, 4 GPUs, b\u00a0=\u00a0128. "
        "The best efficiency is 91 %: course/ddp, 2 GPUs, b\u00a0=\u00a0128."
    )


def test_a_study_slower_on_several_gpus_does_not_boast(tmp_path):
    tables = only(report_tables.make(), strategy="dp", batch_size=32)
    # 9.8 / 14.0 on 2 GPUs.
    found = findings.best_speedup(study(tmp_path, tables)).text
    assert found.startswith("No cell beats one GPU: the best reaches 0.700×")


def test_communication_is_given_beside_its_noise(example):
    found = findings.communication(example).text
    # fast/ddp, 4 GPUs, batch 512: 0.32 - 1.32 / 4 = -0.01.
    assert "communication is −3.1 % of the shortest epoch on several GPUs" in found
    assert "(−0.0100 of 0.320 s)" in found
    assert "that is within noise" in found
    # course/dp, 4 GPUs, batch 32 without loading: 19.5 - 9.4 / 4 = 17.15.
    assert "The largest share is 88 % (17.1 of 19.5 s)" in found
    assert "In 1 cell it comes out negative" in found


def test_communication_is_that_of_the_trace_where_there_is_one(tmp_path):
    # course/ddp on 4 GPUs without loading: 2.9 s at batch 32, 0.5 s at batch 512.
    tables = instrumented(report_tables.make(), {32: 0.29, 512: 0.01}, "profiler")
    found = findings.communication(study(tmp_path, tables))
    assert found.text == (
        "By the profiler’s trace, exposed communication is 2.0 % of the shortest traced epoch on "
        "several GPUs, loading left out (0.0100 of 0.500 s), "
        "course/ddp, 4 GPUs, b\u00a0=\u00a0512. The largest share is 10 % (0.290 of 2.90 s): "
        "course/ddp, 4 GPUs, b\u00a0=\u00a032. "
        "Waiting inside it for the slowest rank is part of it. 20 cells more could not be traced."
    )


def test_a_reading_of_another_instrument_does_not_replace_the_subtraction(tmp_path):
    tables = instrumented(report_tables.make(), {32: 0.29}, "ddp_log")
    found = findings.communication(study(tmp_path, tables))
    assert found.text.startswith("By subtraction without loading, communication is −3.1 %")


def test_the_noise_of_a_subtraction_is_the_ranges_of_both_times():
    timing = report_tables.cells(missing=False)
    table = (
        noise.communication_resolution(timing)
        .set_index(["recipe", "strategy", "gpus", "batch_size", "estimate"])
        .sort_index()
    )
    found = table.loc[("course", "ddp", 4, 32), "resolution_seconds"]
    # ± 2 % of 3.1 on 4 GPUs, and of 9.8 / 4: 0.124 + 0.098.
    assert found["subtraction"] == pytest.approx(0.222)
    # Without loading ± 1 % of 2.9, and of 9.4 / 4: 0.058 + 0.047.
    assert found["subtraction_without_loading"] == pytest.approx(0.105)


def test_noisy_loading_does_not_make_a_time_without_loading_uncertain():
    # 5.4 - 10 / 2 is 0.4 s in both estimates; the whole epochs vary by 1 s, all of it loading.
    one, two = timing_row(1, 128, 10.0, spread=0.5), timing_row(2, 128, 5.4, spread=0.5)
    for row in (one, two):
        row["epoch_seconds_without_loading_min"] = row["epoch_seconds_without_loading_max"] = row[
            "epoch_seconds_without_loading"
        ]
    timing = timing_table(one, two)
    judged = noise.with_resolution(communication(timing), timing)
    assert judged["estimate"].tolist() == ["subtraction", "subtraction_without_loading"]
    assert judged["within_noise"].tolist() == [True, False]


def test_a_reading_of_an_instrument_is_never_within_the_noise_of_a_subtraction():
    timing = timing_table(timing_row(1, 128, 10.0, spread=0.5), timing_row(2, 128, 5.4, spread=0.5))
    reading = communication(timing).head(1).assign(estimate="profiler")
    judged = noise.with_resolution(reading, timing).iloc[0]
    assert not judged["within_noise"] and pd.isna(judged["resolution_seconds"])


def test_the_noise_of_a_time_measured_once_is_unknown():
    timing = report_tables.cells(missing=False).assign(count=1)
    assert noise.communication_resolution(timing)["resolution_seconds"].isna().all()


def test_loading_is_given_for_the_fastest_and_the_worst_cell(example):
    found = findings.loading(example).text
    assert "Waiting for data takes 0 % of the shortest epoch" in found
    # course/dp, 4 GPUs, batch 2048: 1.9 / 3.2.
    assert "at most 59 % (1.90 of 3.20 s): course/dp, 4 GPUs, b\u00a0=\u00a02048" in found


def test_the_bandwidth_is_held_against_the_measured_peak(example):
    found = findings.bandwidth(example)
    # fast/ddp, 2 GPUs, batch 128: 44,695,848 B · 157 / 0.11 s = 63.8 GB/s.
    assert "up to 63.8 GB/s" in found.text
    peak = example.bandwidth[example.bandwidth["gpus"] == 2]["peak_gb_per_s"].iloc[-1]
    assert f"{63.793 / peak:.0%}".replace("%", " %") in found.text


def test_the_bandwidth_is_that_of_the_trace_where_there_is_one(tmp_path):
    tables = report_tables.make()
    table = tables["bandwidth"]
    traced = table[(table["gpus"] == 4) & (table["batch_size"] == 32)].head(1)
    traced = traced.assign(estimate="profiler", bandwidth_gb_per_s=12.3)
    tables["bandwidth"] = pd.concat([table, traced])
    found = findings.bandwidth(study(tmp_path, tables)).text
    assert found.startswith("By the profiler’s trace, gradients travel at up to 12.3 GB/s")


def test_more_than_the_measured_peak_is_doubted(example, tmp_path):
    assert "Above 100 %" not in findings.bandwidth(example).text
    tables = report_tables.make()
    tables["bandwidth"]["utilization"] = 1.5
    found = findings.bandwidth(study(tmp_path, tables)).text
    assert "150 % of the" in found
    assert "Above 100 %, the estimate is too low to be a communication time" in found


def test_without_a_sweep_the_share_of_the_peak_is_unknown(tmp_path):
    tables = report_tables.make()
    tables["bandwidth"][["peak_gb_per_s", "utilization"]] = None
    found = findings.bandwidth(study(tmp_path, tables)).text
    assert "unknown, as the interconnect was not measured" in found


def test_the_largest_batch_is_held_against_the_reference(example):
    # Shares fall with the fourth root of the global batch: 0.75 at 128, 0.2792 at 16384.
    found = findings.large_batch_accuracy(example).text
    assert "largest global batch with an accuracy, 16384" in found
    assert "test accuracy is 27.9 %, against 75.0 % at batch 128 on one GPU: −47.08" in found
    assert "3 infeasible" in found


def test_the_reference_is_batch_128_on_one_gpu_or_the_smallest():
    tables = report_tables.make()
    compared = large_batch.compare(tables["timing"], tables["accuracy"])
    reference = compared[compared["reference"]]
    assert set(reference["batch_size"]) == {128}
    assert set(reference["gpus"]) == {1}
    timing = tables["timing"][tables["timing"]["batch_size"] != 128]
    smaller = large_batch.compare(timing, tables["accuracy"])
    assert set(smaller[smaller["reference"]]["batch_size"]) == {32}


def test_equal_global_batches_are_within_the_spread_of_their_seeds():
    tables = report_tables.make()
    compared = large_batch.compare(tables["timing"], tables["accuracy"])
    same = compared[(compared["global_batch_size"] == 128) & (compared["gpus"] == 4)].iloc[0]
    assert same["difference"] == pytest.approx(0)
    assert same["within_spread"]


def test_fewer_than_five_epochs_are_compared_at_the_last():
    tables = report_tables.make()
    short = tables["accuracy"][tables["accuracy"]["epoch"] <= 3]
    compared = large_batch.compare(tables["timing"], short)
    assert set(compared["epoch"]) == {3}
    reference = compared[compared["reference"]].iloc[0]
    # 0.1 + 0.08 + 3 · 0.12 = 0.54 for seed 0, 0.01 less for each further seed.
    assert reference["train_accuracy"] == pytest.approx(0.53)
    assert (reference["train_accuracy_min"], reference["train_accuracy_max"]) == pytest.approx(
        (0.52, 0.54)
    )


def test_a_single_seed_has_no_spread_to_judge_by(tmp_path):
    found = findings.large_batch_accuracy(study(tmp_path, only(report_tables.make(), seed=0)))
    assert "with fewer than two seeds, its spread is unknown" in found.text


def test_quantization_is_the_mean_over_the_seeds(example):
    found = findings.quantization(example).text
    assert found == (
        "Int8 quantization (weights+activations+bias) changes test accuracy by −0.20 points on "
        "average over 3 seeds (−0.30 to −0.10 by seed), its standard error is not in this study’s "
        "records; 91.0\u00a0% of the images keep their class."
    )


def test_quantization_has_its_paired_error_and_what_integers_say(tmp_path):
    tables = report_tables.make() | quantization_example.make()
    found = findings.quantization(study(tmp_path, tables)).text
    assert found == (
        "Int8 quantization (weights+activations+bias) changes test accuracy by −0.50 ± 0.09 points "
        "on average over 3 seeds (−0.60 to −0.40 by seed), more than two standard errors; "
        "96.5\u00a0% of the images keep their class. Of 300,000 logits, 0 differ from those "
        "computed in integers alone."
    )


def test_a_difference_of_less_than_two_standard_errors_is_within_noise(tmp_path):
    tables = report_tables.make() | quantization_example.make()
    stages = tables["quantization"]
    tables["quantization"] = stages[stages["stage"].isin(["float32", "weights"])]
    found = findings.quantization(study(tmp_path, tables)).text
    assert "(−0.10 to +0.10 by seed), within noise (two standard errors);" in found


def test_tables_without_evidence_say_what_is_missing(tmp_path):
    tables = {name: table[:0] for name, table in report_tables.make().items()}
    found = findings.findings(study(tmp_path, tables))
    assert len(found) == 12
    unsupported = [finding.text for finding in found if not finding.supported]
    assert len(unsupported) == 11
    assert found[-1].text == "The audit of these tables: no findings."


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (0.345, "0.345"),
        (12.44, "12.4"),
        (1234.4, "1,234"),
        (0.0099999, "0.0100"),
        (-0.01, "−0.0100"),
        (0, "0"),
        (999999, "999,999"),
        (16592464668, "1.66e10"),
        (-9999999, "−1.00e7"),
        (float("nan"), "–"),
    ],
)
def test_numbers_keep_three_significant_digits(value, written):
    assert fmt.significant(value) == written
