"""The sentences of the summary: their numbers, their sources, what they admit not to know."""

import pytest

from examples import report_tables
from examples.findings_study import only, study
from scaling.report import summary
from scaling.tables.schema import StudyTables


@pytest.fixture(scope="module")
def example(tmp_path_factory) -> StudyTables:
    return study(tmp_path_factory.mktemp("study"), report_tables.make())


def test_the_outcome_counts_every_status(example):
    assert summary.outcome(example).text == (
        "Of 45 cells, 37 ok, 3 oom, 3 infeasible, 1 timeout, 1 diverged."
    )


def test_the_fastest_cell_comes_with_its_range_and_what_is_within_noise(example):
    found = summary.fastest(example)
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
    assert "0.330 s" in summary.fastest(study(tmp_path, tables)).text


def test_a_single_measurement_is_called_one(tmp_path):
    tables = only(report_tables.make(), batch_size=128)
    tables["timing"]["count"] = 1
    found = summary.fastest(study(tmp_path, tables)).text
    assert "over 1 epoch)" in found
    assert found.endswith("It was measured once, so its spread is unknown.")


def test_the_best_speedup_names_efficiency_and_doubt(example):
    # fast/ddp, batch 512: 1.32 / 0.32 = 4.125 on 4 GPUs.
    found = summary.best_speedup(example).text
    assert found.startswith("The best speedup is 4.12× (3.96–4.29) on 4 GPUs, an efficiency of 103")
    assert "above its 4 GPUs, within noise: see the audit" in found
    # course/dp: 128 and 2048 on 2 GPUs, 512 on 4.
    assert "3 of 22 cells on several GPUs cannot be told from one GPU" in found


def test_a_speedup_that_is_all_above_the_gpus_is_not_called_noise(tmp_path):
    tables = report_tables.make()
    above = tables["speedup"]["speedup"] > tables["speedup"]["gpus"]
    tables["speedup"].loc[above, "speedup_min"] = 4.01
    found = summary.best_speedup(study(tmp_path, tables)).text
    assert "above its 4 GPUs: see the audit" in found


def test_the_best_efficiency_is_named_when_another_cell_has_it(tmp_path):
    tables = only(report_tables.make(), recipe="course", strategy="ddp", batch_size=128)
    # 4.0 / 2.2 = 1.82 on 2 GPUs is 91 %; 4.0 / 1.25 = 3.2 on 4 is 80 %.
    assert summary.best_speedup(study(tmp_path, tables)).text == (
        "The best speedup is 3.20× (3.07–3.33) on 4 GPUs, an efficiency of 80 %: "
        "course/ddp, 4 GPUs, b\u00a0=\u00a0128. "
        "The best efficiency is 91 %: course/ddp, 2 GPUs, b\u00a0=\u00a0128."
    )


def test_a_study_slower_on_several_gpus_does_not_boast(tmp_path):
    tables = only(report_tables.make(), strategy="dp", batch_size=32)
    # 9.8 / 14.0 on 2 GPUs.
    found = summary.best_speedup(study(tmp_path, tables)).text
    assert found.startswith("No cell beats one GPU: the best reaches 0.700×")


def test_loading_is_given_for_the_fastest_and_the_worst_cell(example):
    found = summary.loading(example).text
    assert "Waiting for data takes 0 % of the shortest epoch" in found
    # course/dp, 4 GPUs, batch 2048: 1.9 / 3.2.
    assert "at most 59 % (1.90 of 3.20 s): course/dp, 4 GPUs, b\u00a0=\u00a02048" in found


def test_tables_without_evidence_say_what_is_missing(tmp_path):
    tables = {name: table[:0] for name, table in report_tables.make().items()}
    found = summary.findings(study(tmp_path, tables))
    assert len(found) == 12
    unsupported = [finding.text for finding in found if not finding.supported]
    assert len(unsupported) == 11
    assert found[-1].text == "The audit of these tables: no findings."
