"""The sentences of the summary on communication and bandwidth."""

import pandas as pd
import pytest

from examples import report_tables
from examples.claim_study import instrumented
from examples.findings_study import study
from scaling.report import summary
from scaling.tables.schema import StudyTables


@pytest.fixture(scope="module")
def example(tmp_path_factory) -> StudyTables:
    return study(tmp_path_factory.mktemp("study"), report_tables.make())


def test_communication_is_given_beside_its_noise(example):
    found = summary.communication(example).text
    # fast/ddp, 4 GPUs, batch 512: 0.32 - 1.32 / 4 = -0.01.
    assert "communication is −3.1 % of the shortest epoch on several GPUs" in found
    assert "(−0.0100 of 0.320 s)" in found
    # Even the longest of 4 GPUs, 0.3232, is below the shortest of one / 4, 0.3267.
    assert "that is within noise" not in found
    # course/dp, 4 GPUs, batch 32 without loading: 19.5 - 9.4 / 4 = 17.15.
    assert "The largest share is 88 % (17.1 of 19.5 s)" in found
    assert "In 1 cell it comes out negative" in found


def test_communication_is_that_of_the_trace_where_there_is_one(tmp_path):
    # course/ddp on 4 GPUs without loading: 2.9 s at batch 32, 0.5 s at batch 512.
    tables = instrumented(report_tables.make(), {32: 0.29, 512: 0.01}, "profiler")
    found = summary.communication(study(tmp_path, tables))
    assert found.text == (
        "By the profiler’s trace, exposed communication is 2.0 % of the shortest traced epoch on "
        "several GPUs, loading left out (0.0100 of 0.500 s), "
        "course/ddp, 4 GPUs, b\u00a0=\u00a0512. The largest share is 10 % (0.290 of 2.90 s): "
        "course/ddp, 4 GPUs, b\u00a0=\u00a032. "
        "Waiting inside it for the slowest rank is part of it. 20 cells more could not be traced."
    )


def test_a_reading_of_another_instrument_does_not_replace_the_subtraction(tmp_path):
    tables = instrumented(report_tables.make(), {32: 0.29}, "ddp_log")
    found = summary.communication(study(tmp_path, tables))
    assert found.text.startswith("By subtraction without loading, communication is −3.1 %")


def test_the_bandwidth_is_held_against_the_measured_peak(example):
    found = summary.bandwidth(example)
    # fast/ddp, 2 GPUs, batch 128: 44,695,848 B · 157 / 0.11 s = 63.8 GB/s.
    assert "up to 63.8 GB/s" in found.text
    assert "GB/s measured in the same study." in found.text
    peak = example.bandwidth[example.bandwidth["gpus"] == 2]["peak_gb_per_s"].iloc[-1]
    assert f"{63.793 / peak:.0%}".replace("%", " %") in found.text


def test_the_bandwidth_is_that_of_the_trace_where_there_is_one(tmp_path):
    tables = report_tables.make()
    table = tables["bandwidth"]
    traced = table[(table["gpus"] == 4) & (table["batch_size"] == 32)].head(1)
    traced = traced.assign(estimate="profiler", bandwidth_gb_per_s=12.3)
    tables["bandwidth"] = pd.concat([table, traced])
    found = summary.bandwidth(study(tmp_path, tables)).text
    assert found.startswith("By the profiler’s trace, gradients travel at up to 12.3 GB/s")


def test_more_than_the_measured_peak_is_doubted(example, tmp_path):
    assert "Above 100 %" not in summary.bandwidth(example).text
    tables = report_tables.make()
    tables["bandwidth"]["utilization"] = 1.5
    found = summary.bandwidth(study(tmp_path, tables)).text
    assert "150 % of the" in found
    assert "Above 100 %, the estimate is too low to be a communication time" in found


def test_without_a_sweep_the_share_of_the_peak_is_unknown(tmp_path):
    tables = report_tables.make()
    tables["bandwidth"][["peak_gb_per_s", "utilization"]] = None
    found = summary.bandwidth(study(tmp_path, tables)).text
    assert "unknown, as the interconnect was not measured" in found
