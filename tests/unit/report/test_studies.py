"""The index of stored studies."""

import shutil

import studies_render
from examples import report_tables
from examples.page import Page
from examples.report_page import REPORT, lay_out
from examples.report_tables import STUDY


def test_the_index_has_a_row_for_each_study_with_its_report_or_the_command(tmp_path):
    results = tmp_path / "results"
    lay_out(results / "replay/first", report_tables.make(missing=True))
    for name in ("first", "second"):
        shutil.copytree(results / "replay/first", tmp_path / name)
        (tmp_path / name / "config.yaml").write_text(f"study: {STUDY}")
    (results / "replay/first/report.html").touch()
    options = ["--results", str(results), "--template", str(REPORT / "studies.html.j2")]
    studies_render.main(["--folder", str(tmp_path), *options])
    page = Page((results / "studies.html").read_text(encoding="utf-8"))
    first, second = page.rows("Studies, what they found, and where")
    assert first[0] == "first" and second[0] == "second make replay STUDY=second"
    (link,) = (
        named["href"] for tag, named in page.elements if tag == "a" and "#" not in named["href"]
    )
    assert link == "replay/first/report.html"
    # Of 45 cells one is missing; 1.32 / 0.32 s with b = 512 on four GPUs
    assert "1 missing" in first[2] and first[3] == "Run this: fast, 1 × 128"
    assert first[4].startswith("Faster on 4 GPUs") and "4.12×" in first[4]
    assert "cannot be shown" in second[1] and set(second[2:]) == {"–"}
