"""The summary: the figures of its sentences, and what they admit not to know."""

import pandas as pd
import pytest

from examples import quantization_example, report_tables
from examples.claim_study import instrumented
from examples.report_page import section
from examples.report_tables import only, study
from scaling.core.numbers import cell_name
from scaling.report import summary
from scaling.tables.schema import StudyTables


@pytest.fixture(scope="module")
def example(tmp_path_factory) -> StudyTables:
    return study(tmp_path_factory.mktemp("study"), report_tables.make())


@pytest.fixture
def facts(tmp_path):
    """What a fact of the summary is in other tables."""
    return lambda fact, tables: fact(study(tmp_path, tables))


def words(folder, tables):
    """The sentences of the summary, after the one link of the contents."""
    return section(folder, "summary", tables).items[1:]


def place(row):
    return cell_name(row).replace("\u00a0", " ")


def test_the_outcome_counts_every_status(example):
    found = summary.outcome(example)
    assert found["statuses"] == ["37 ok", "3 oom", "3 infeasible", "1 timeout", "1 diverged"]


def test_the_fastest_cell_comes_with_what_is_within_noise_of_it(example):
    found = summary.fastest(example)
    assert place(found["best"]) == "fast/ddp, 4 GPUs, b = 512"
    assert [place(row) for row in found["ties"]] == ["fast/ddp, 4 GPUs, b = 2048"]


def test_a_fast_cell_that_diverged_does_not_count(facts):
    tables = report_tables.make()
    tables["timing"].loc[tables["timing"]["epoch_seconds"] == 0.32, "status"] = "diverged"
    assert facts(summary.fastest, tables)["best"].epoch_seconds == 0.33


def test_the_best_speedup_and_how_many_cells_are_no_faster_than_one_gpu(example):
    # fast/ddp, batch 512: 1.32 / 0.32 = 4.125 on 4 GPUs; course/dp: 128 and 2048 on 2 GPUs, 512.
    found = summary.best_speedup(example)
    assert found["fast"].speedup == pytest.approx(4.125) and found["efficient"] is None
    assert (found["noisy"], found["cells"]) == (3, 22)


def test_the_best_efficiency_is_named_when_another_cell_has_it(facts):
    tables = only(report_tables.make(), recipe="course", strategy="ddp", batch_size=128)
    # 4.0 / 2.2 = 1.82 on 2 GPUs is 91 %; 4.0 / 1.25 = 3.2 on 4 is 80 %.
    found = facts(summary.best_speedup, tables)
    assert (found["fast"].gpus, found["efficient"].gpus) == (4, 2)


def test_loading_is_given_for_the_fastest_and_the_worst_cell(example):
    found = summary.loading(example)
    # course/dp, 4 GPUs, batch 2048: 1.9 / 3.2.
    assert (found["fast"].share, found["most"].share) == (0, pytest.approx(1.9 / 3.2))


def test_communication_is_given_beside_its_noise(example):
    found = summary.communication(example)
    # fast/ddp, 4 GPUs, batch 512: 0.32 - 1.32 / 4 = -0.01. Even the longest of 4 GPUs, 0.3232, is
    # below the shortest of one / 4, 0.3267. course/dp, 4 GPUs, 32: (19.5 - 9.4 / 4) / 19.5.
    assert found["fast"].communication_seconds == pytest.approx(-0.01)
    assert not found["fast"].within_noise and found["negative"] == 1
    assert found["most"].share == pytest.approx(17.15 / 19.5)


def test_communication_is_that_of_the_trace_where_there_is_one(tmp_path):
    # course/ddp on 4 GPUs without loading: 2.9 s at batch 32, 0.5 s at batch 512.
    tables = instrumented(report_tables.make(), {32: 0.29, 512: 0.01}, "profiler")
    assert words(tmp_path, tables)[3] == (
        "By the profiler’s trace, exposed communication is 2.0 % of the shortest traced epoch on "
        "several GPUs, loading left out (0.0100 of 0.500 s), course/ddp, 4 GPUs, b = 512. The "
        "largest share is 10 % (0.290 of 2.90 s): course/ddp, 4 GPUs, b = 32. Waiting inside it "
        "for the slowest rank is part of it. 20 cells more could not be traced. "
        "communication.csv: course/ddp, 4 GPUs, b = 512; course/ddp, 4 GPUs, b = 32"
    )


def test_another_instrument_does_not_replace_the_subtraction(facts):
    tables = instrumented(report_tables.make(), {32: 0.29}, "ddp_log")
    assert facts(summary.communication, tables)["estimate"] == "subtraction without loading"


def test_the_bandwidth_is_that_of_the_trace_where_there_is_one(example, facts):
    # fast/ddp, 2 GPUs, batch 128: 44,695,848 B · 157 / 0.11 s = 63.8 GB/s.
    assert summary.bandwidth(example)["best"].bandwidth_gb_per_s == pytest.approx(63.8, abs=0.05)
    tables = report_tables.make()
    table = tables["bandwidth"]
    traced = table[(table["gpus"] == 4) & (table["batch_size"] == 32)].head(1)
    traced = traced.assign(estimate="profiler", bandwidth_gb_per_s=12.3)
    tables["bandwidth"] = pd.concat([table, traced])
    assert facts(summary.bandwidth, tables)["best"].bandwidth_gb_per_s == 12.3


def test_the_best_use_of_the_peak_says_whether_its_communication_may_be_noise(example, facts):
    # fast/ddp, batch 2048 on one GPU: 40,000 images in 1.24 s, 107 of 797 TFLOP/s.
    best = summary.utilization(example)["best"]
    assert (best.gpus, best.batch_size) == (1, 2048)
    assert best.utilization == pytest.approx(107.4 / 797, abs=1e-3)
    tables = report_tables.make()
    used = tables["utilization"]
    # fast/ddp, batch 512 on 2 GPUs: 0.66 - 1.32 / 2 = 0.
    noisy = (used["recipe"] == "fast") & (used["gpus"] == 2) & (used["batch_size"] == 512)
    used.loc[noisy, "utilization"] = 0.9
    assert facts(summary.utilization, tables)["within_noise"]


def test_the_largest_batch_is_held_against_the_reference(example, tmp_path):
    # Shares fall with the fourth root of the global batch: 0.75 at 128, 0.2792 at 16384.
    found = summary.large_batch_accuracy(example)
    assert found["row"].global_batch_size == 16384
    assert found["accuracy"] - found["reference_accuracy"] == pytest.approx(-0.4708, abs=1e-4)
    assert "3 infeasible" in found["larger"]
    once = only(report_tables.make(), seed=0)
    assert any(
        "with fewer than two seeds, its spread is unknown" in one for one in words(tmp_path, once)
    )


def test_quantization_is_the_mean_over_the_seeds_with_its_paired_error(example, facts):
    found = summary.quantization(example)
    assert found["cost"].difference == "−0.20" and found["compared"] == 0
    paired = facts(summary.quantization, report_tables.make() | quantization_example.make())
    assert paired["cost"].difference == "−0.50 ± 0.09"
    assert (paired["compared"], paired["differing"]) == (300_000, 0)


def test_the_fixed_cost_counts_a_run_that_strategies_share_once(facts):
    tables = report_tables.make()
    tables["startup"] = tables["startup"][tables["startup"]["batch_size"] == 512]
    # The 1-GPU run of course is one for both strategies: epochs 3.0, 3.3, 2.97, 1.49 and 0.9 are
    # 11.66 s, fast's 1.32, 0.66 and 0.32 are 2.3 s: measured 3 · 13.96 = 41.88 s.
    # Start-ups 7 + 7.5 + 8.5 + 7.5 + 8.5 = 39 and 36 + 36.5 + 37.5 = 110: the whole is
    # 149 + 5 · 13.96 + 8 · 3 = 242.8 s.
    found = facts(summary.fixed_cost, tables)
    assert (found["measured"], found["whole"]) == (pytest.approx(41.88), pytest.approx(242.8))
    assert (found["runs"], found["represented"], found["cells"]) == (8, 9, 9)
    assert found["startups"] == [("course", 7.5, "imports", 4.0), ("fast", 36.5, "recipe", 30.0)]


def test_doubts_stand_beside_the_figures_they_concern(tmp_path):
    tables = only(report_tables.make(), batch_size=512)
    tables["timing"]["count"] = 1
    tables["bandwidth"][["peak_gb_per_s", "utilization"]] = None
    tables["speedup"]["speedup_min"] = 4.01
    found = words(tmp_path, tables)
    assert "It was measured once, so its spread is unknown." in found[1]
    assert "(above its 4 GPUs: see the audit)" in found[2]
    assert "unknown, as the interconnect was not measured" in found[5]
    slow = words(tmp_path, only(report_tables.make(), strategy="dp", batch_size=32))
    # 9.8 / 14.0 on 2 GPUs.
    assert slow[2].startswith("No cell beats one GPU: the best reaches 0.700×")


def test_tables_without_evidence_say_what_is_missing(tmp_path):
    tables = {name: table[:0] for name, table in report_tables.make().items()}
    page = section(tmp_path, "summary", tables)
    classes = [named.get("class") for tag, named in page.elements if tag == "li"]
    assert classes[-12:] == ["unsupported"] * 11 + [None]
    assert page.items[-1].startswith("The audit of these tables: no findings.")
    tables = report_tables.make()
    tables["utilization"]["utilization"] = pd.NA
    assert "no cell has both a time and a peak of its precision" in words(tmp_path, tables)[6]
