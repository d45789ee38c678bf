"""Physical limits on the page: what the machine can do, how much each cell uses."""

import pandas as pd
import pytest

from examples import report_tables
from examples.report_page import Page, section


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> Page:
    return section(tmp_path_factory.mktemp("study"), "limits", report_tables.make())


def cell(page: Page, title: str, batch: str, gpus: str) -> list[str]:
    """The entries of one cell, below the heading of its batch size."""
    rows = page.rows(next(name for name in page.tables if name.startswith(title)))
    start = next(index for index, row in enumerate(rows) if len(row) > 2 and row[0] == batch)
    return next(row[-7:][1:] for row in rows[start : start + 3] if row[-7] == gpus)


def test_each_size_of_a_precision_stands_beside_its_share_of_the_largest(page):
    rows = page.rows("What the machine reaches")
    assert rows[0] == [
        *("matrix product tf32", "4096 × 4096"),
        *("390 TFLOP/s 382 TFLOP/s to 398 TFLOP/s", "94 %", "3"),
    ]
    assert rows[1][0] == "8192 × 8192"
    assert rows[3][1:3] == ["797 TFLOP/s 781 TFLOP/s to 813 TFLOP/s", "100 %"]
    # 2 · 2^30 bytes in 503 µs.
    assert rows[4][:3] == [
        *("copy within one device", "1.07 GB", "4.27 TB/s 4.21 TB/s to 4.27 TB/s")
    ]


def test_copies_between_gpus_are_a_table_of_pairs(page):
    # 2^30 bytes in 2.7 ms.
    rows = page.rows("Copies of 1.07 GB between GPUs, GB/s")
    assert [row[0] for row in rows] == [f"GPU {gpu}" for gpu in range(4)]
    assert rows[0][1:3] == ["–", "398 398–398"]
    assert rows[3][3:] == ["398 398–398", "–"]


def test_on_one_gpu_there_are_no_copies_between_gpus(tmp_path):
    tables = report_tables.make()
    measured = tables["peaks"]
    tables["peaks"] = measured[measured["quantity"] != "gpu_to_gpu_copy"]
    assert not any("between GPUs" in title for title in section(tmp_path, "limits", tables).tables)


def test_each_cell_has_its_share_of_the_peak_and_what_the_rest_is(page):
    title = "Utilization: course, ddp (peak: tf32, 417 TFLOP/s)"
    assert title in page.tables
    # Batch 512 on 4 GPUs: 40,000 images in 0.9 s, of which 0.4 s loading; 3.329 GFLOP each.
    # (0.5 - 1.5 / 4) / 0.9 = 14 % communication by subtraction; 1 - 8.9 - 44 - 14 = 33 %.
    assert cell(page, title, "512", "4") == [
        *("44,444 43,573–45,351", "37.0 TFLOP/s", "8.9 % 16 % without loading", "44 %"),
        *("14 % by “subtraction without loading”", "33 %"),
    ]
    assert cell(page, title, "512", "1")[-2:] == ["–", "39 %"]


def test_communication_that_may_be_noise_is_called_so_here_too(page):
    # fast/ddp, batch 512 on 2 GPUs: 0.66 - 1.32 / 2 = 0; on 4 GPUs 0.32 - 1.32 / 4 = -0.01, where
    # no time of 4 GPUs, ± 1 %, is as long as a quarter of one of one GPU.
    found = [cell(page, "Utilization: fast, ddp", "512", gpus)[4] for gpus in ("2", "4")]
    assert found == [
        "0 % by “subtraction without loading” within noise",
        "−3.1 % by “subtraction without loading” negative",
    ]


def test_a_cell_without_time_shows_its_status(page):
    rows = page.rows("Utilization: fast, ddp (peak: bf16, 797 TFLOP/s)")
    assert [row[-2:] for row in rows[-3:]] == [["1", "oom"], ["2", "oom"], ["4", "infeasible"]]


def test_what_an_old_study_did_not_record_is_not_made_up(tmp_path):
    tables = report_tables.make()
    used = tables["utilization"]
    unknown = ["flops_per_image", "flops_per_second_per_gpu", "utilization"]
    used.loc[used["recipe"] == "course", unknown] = pd.NA
    used.loc[used["recipe"] == "course", "note"] = "the runs did not record the precision"
    page = section(tmp_path, "limits", tables)
    row = page.rows(next(t for t in page.tables if t.startswith("Utilization: course, ddp")))[0]
    assert row[-1] == "operations not recorded"
    assert "4 GPUs × 2048: the runs did not record the precision" in page.text


def test_a_precision_without_a_measured_peak_has_no_share(tmp_path):
    tables = report_tables.make()
    tables["utilization"][["peak_flops_per_second", "utilization"]] = pd.NA
    page = section(tmp_path, "limits", tables)
    title = "Utilization: course, ddp (peak: not known)"
    assert page.rows(title)[0][2:] == ["4,082 4,002–4,165", "13.6 TFLOP/s", "no peak"]


def test_the_time_at_the_power_limit_is_shown_where_a_driver_counted_it(tmp_path):
    tables = report_tables.make()
    used = tables["utilization"]
    best = (used["recipe"] == "fast") & (used["batch_size"] == 2048) & (used["gpus"] == 1)
    used.loc[best, "power_capped_share"] = 0.37
    page = section(tmp_path, "limits", tables)
    ends = [row[-1] for row in page.rows("Utilization: fast, ddp (peak: bf16, 797 TFLOP/s)")]
    assert ends.count("37 %") == 1 and ends.count("–") > 1
    assert "37 %" not in page.rows("Utilization: course, ddp (peak: tf32, 417 TFLOP/s)")[0]


def test_without_limits_the_page_says_so(tmp_path):
    tables = report_tables.make()
    tables["peaks"] = tables["peaks"][:0]
    assert "The limits of the machine were not measured" in section(tmp_path, "limits", tables).text
