"""Studies side by side: the table, its caveats, the section of the report and the figure."""

import pandas as pd
import pytest

import tables_comparison
from examples.published_study import CLEAN, edited, study, write
from scaling.tables import comparison, schema


@pytest.fixture
def table(tmp_path):
    """The clean published study as it stands in comparison.csv."""
    found = study(tmp_path).found
    return comparison.of_study(
        "clean", found.timing, found.speedup, found.bandwidth, "resnet18-cifar", "4 A100"
    )


def test_a_study_keeps_a_row_for_each_cell_with_its_count(table):
    assert table.columns.tolist() == schema.columns("comparison")
    assert len(table) == 7
    row = table[(table.gpus == 4) & (table.batch_size == 128)].iloc[0]
    # 18/4.892 = 3.679, 11.173962 · 1.5 GB/s over 0.392 s without loading
    assert (row.epoch_seconds, row["count"], row.samples) == (4.892, 5, 50_000)
    assert row.speedup == pytest.approx(3.6795, abs=1e-4)
    assert row.efficiency == pytest.approx(0.91987, abs=1e-4)
    assert row.estimate == "subtraction_without_loading"
    assert row.communication_seconds == pytest.approx(0.392)
    assert row.bandwidth_gb_per_s == pytest.approx(16.760943)


def test_bandwidth_is_by_whole_epochs_where_loading_was_not_measured(tmp_path):
    cut = pd.read_csv(write(tmp_path) / "timings.csv").assign(epoch_seconds_without_loading="")
    found = study(tmp_path / "cut", cut.to_csv(index=False)).found
    row = comparison.of_study("c", found.timing, found.speedup, found.bandwidth, "m", "h").iloc[2]
    assert row.estimate == "subtraction"
    assert row.bandwidth_gb_per_s == pytest.approx(11.173962)  # 9.784 - 18/2 = 0.784 s as well


def test_a_negative_communication_is_shown_and_no_other_estimate_takes_its_place(tmp_path):
    found = study(tmp_path, edited({(4, 512): {"epoch_seconds_without_loading": "4.100"}})).found
    table = comparison.of_study("c", found.timing, found.speedup, found.bandwidth, "m", "h")
    assert set(table.estimate.dropna()) == {"subtraction_without_loading"}
    row = table[(table.gpus == 4) & (table.batch_size == 512)].iloc[0]
    assert row.communication_seconds == pytest.approx(-0.1)  # 4.1 - 16.8/4
    assert pd.isna(row.bandwidth_gb_per_s)


def test_a_measured_studys_machine_is_what_its_runs_recorded():
    runs = pd.DataFrame(
        {
            "status": ["ok", "ok", "missing", "infeasible"],
            "model": [*["resnet18-cifar, width 64"] * 2, "", "a model that was not made"],
            "device_names": ["NVIDIA H200", "", "", ""],
            "cpu": ["EPYC", "EPYC", "", "a CPU that looked at the sizes"],
        }
    )
    assert comparison.model_and_hardware(runs) == (
        "resnet18-cifar, width 64",
        "NVIDIA H200; CPU EPYC",
    )
    assert comparison.model_and_hardware(runs[2:]) == ("not recorded", "not recorded")


def test_the_script_sets_the_published_studies_side_by_side(tmp_path):
    folder = write(tmp_path / "studies")
    found = study(tmp_path / "again", CLEAN).found
    for name in ("timing", "speedup", "bandwidth"):
        schema.write(name, getattr(found, name), tmp_path / f"tables/clean/{name}.csv")
    target = tmp_path / "comparison.csv"
    tables_comparison.main(
        [
            *("--tables", str(tmp_path / "tables"), "--folders", str(folder)),
            *("--output", str(target)),
        ]
    )
    table = schema.read("comparison", target)
    assert set(table.study) == {"clean"} and set(table.hardware) == {"not stated"}
