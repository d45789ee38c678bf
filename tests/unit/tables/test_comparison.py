"""Studies side by side: the table, its caveats, the section of the report and the figure."""

import math
from types import SimpleNamespace

import pandas as pd
import pytest

import published_render
import tables_comparison
from examples import report_tables
from examples.published_study import CLEAN, edited, study, write
from examples.report_page import REPORT, Page, section
from scaling.report.sections.comparison import caveats, side_by_side
from scaling.tables import comparison, schema

BANDWIDTH = "Bandwidth, GB/s, and seconds of communication"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return section(tmp_path_factory.mktemp("study"), "side_by_side", report_tables.make())


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


def test_a_bandwidth_above_the_measured_peak_is_flagged(tmp_path):
    tables = report_tables.make()
    known = tables["comparison"]["bandwidth_gb_per_s"].notna()
    tables["comparison"].loc[known, "utilization"] = [1.5, *[0.5] * (int(known.sum()) - 1)]
    rows = section(tmp_path, "side_by_side", tables).rows(BANDWIDTH)
    assert sum("above peak" in entry for row in rows for entry in row) == 1


def test_caveats_name_what_differs_from_the_measured_study(table):
    own = table.assign(study="mine", model="resnet18-cifar, width 64")
    own.index += 100
    assert caveats(table, own) == []
    assert caveats(table.assign(model="resnet18"), own) == ["other model"]
    narrow = own.assign(model="resnet18-cifar, width 1")
    assert caveats(table, narrow) == ["other model"]
    assert caveats(table.assign(hardware="V100"), own) == ["other hardware"]
    assert caveats(table.assign(samples=1_437.0), own) == ["1,437 images an epoch"]
    assert caveats(table.assign(count=1), own) == ["one sample"]
    assert caveats(table.assign(estimate="subtraction"), own) == [
        "bandwidth counts loading as communication"
    ]


def test_without_a_measured_study_the_caveats_are_those_of_the_figures_themselves(table):
    once = table.assign(count=1, estimate="subtraction", model="resnet9")
    assert caveats(once, own=table[:0]) == [
        "one sample",
        "bandwidth counts loading as communication",
    ]


def test_the_published_page_has_counts_and_caveats_beside_its_figure(tmp_path):
    folder = write(tmp_path / "studies")
    found = study(tmp_path / "again", edited({(4, 512): {"count": "1"}})).found
    names = ("timing", "speedup", "communication", "bandwidth", "printed", "audit")
    for name in (*names, "prediction", "cost_model"):
        schema.write(name, getattr(found, name), tmp_path / f"tables/clean/{name}.csv")
    (tmp_path / "figure.svg").write_text("<svg/>")
    target = tmp_path / "published.html"
    published_render.main(
        [
            *("--folders", str(folder), "--tables", str(tmp_path / "tables")),
            *("--figure", str(tmp_path / "figure.svg"), "--output", str(target)),
            *("--template", str(REPORT / "published.html.j2")),
        ]
    )
    shown = Page(target.read_text(encoding="utf-8"))
    assert shown.row("What is compared", "clean") == [
        *("resnet18-cifar, ddp", "resnet18-cifar", "not stated", "1–5", "one sample"),
    ]
    assert shown.row("All studies", "clean")[0] == str(folder)


def test_a_negative_communication_stands_in_the_report_instead_of_a_bandwidth(tmp_path):
    made = report_tables.make()
    table = made["comparison"]
    cell = (table["study"] == "lab") & (table["gpus"] == 4) & (table["batch_size"] == 32)
    table.loc[cell, ["communication_seconds", "bandwidth_gb_per_s"]] = [-0.5, math.nan]
    shown = section(tmp_path, "side_by_side", made).row(BANDWIDTH, "32 × 4")
    assert shown[-1] == "– in −0.500 s negative"


def test_the_report_says_what_is_compared(page):
    rows = page.rows("What is compared")
    assert [row[:2] for row in rows] == [
        *(["example", "course, ddp"], ["example", "course, dp"], ["example", "fast, ddp"]),
        ["lab", "resnet9, ddp"],
    ]
    assert rows[2][2:] == ["resnet18-cifar, width 64", "NVIDIA H200", "9", "–"]
    assert rows[3][2:] == [
        *("resnet9", "4 A40", "1"),
        "other model; other hardware; 50,000 images an epoch; one sample; "
        "bandwidth counts loading as communication",
    ]


def test_the_report_has_each_figure_of_its_own_cells_and_of_those_that_two_studies_share(page):
    # 9.06 s and 23.55/9.06 = 2.599 in the other study; 2.2 s and 7.2/2.2 = 3.27 in fast/ddp
    rows = [row[0] for row in page.rows("Seconds per epoch")]
    assert rows[:3] == ["32 × 1", "32 × 2", "32 × 4"] and "2048 × 4" in rows
    assert page.row("Seconds per epoch", "32 × 4")[2:] == [
        *("2.20 median of 9 epochs", "9.06 once"),
    ]
    assert page.row("Speedup over one GPU", "32 × 4")[2:] == [
        *("3.27 efficiency 82 %", "2.60 efficiency 65 %"),
    ]
    # 67,043,772 B · 391 / 3.1725 s = 8.263 GB/s by whole epochs
    assert page.row(BANDWIDTH, "32 × 4")[-1] == "8.26 in 3.17 s"


def test_the_columns_of_eight_studies_are_narrow_enough_for_the_page():
    # A ninth of the page's 960 px is 107, less 22 between columns: room for 12 letters of 7 px.
    table = report_tables.make()["comparison"]
    table.loc[table["bandwidth_gb_per_s"].notna(), "utilization"] = 1.5
    cell = (table["study"] == "lab") & (table["gpus"] == 4) & (table["batch_size"] == 32)
    table.loc[cell, ["communication_seconds", "bandwidth_gb_per_s"]] = [-0.5, math.nan]
    shown = side_by_side(SimpleNamespace(study=report_tables.STUDY, comparison=table))
    entries = [entry for one in shown["metrics"] for row in one.rows for entry in row[1:]]
    flags = [flag for entry in entries for flag in entry.flags]
    assert {"above peak", "negative"} <= set(flags)
    on_one_line = [*flags, *(word for entry in entries for word in entry.detail.split())]
    on_one_line += [entry.text for entry in entries]
    assert max(map(len, on_one_line)) <= 12


def test_without_another_study_the_report_says_so(tmp_path):
    made = report_tables.make()
    own = made["comparison"]
    made["comparison"] = own[own["study"] == report_tables.STUDY]
    assert "There is no published study" in section(tmp_path, "side_by_side", made).text


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
