"""The page a reader opens: what it says, where, and that it needs nothing but itself."""

import re

import pytest

import report_render
from examples import convergence_records, report_tables
from examples.report_page import REPORT, Page, arguments, lay_out, render, section
from scaling.core.errors import UserError
from scaling.report import report


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The results of a study with every table that a report can have."""
    made = report_tables.make()
    place = tmp_path_factory.mktemp("study")
    lay_out(place, made | convergence_records.tables(made["timing"]))
    return place


@pytest.fixture(scope="module")
def page(folder) -> Page:
    report_render.main(arguments(folder))
    return Page((folder / "report.html").read_text(encoding="utf-8"))


def test_the_page_is_one_document_that_loads_nothing(page):
    assert page.source.count("<!DOCTYPE html>") == 1
    tags = [tag for tag, _ in page.elements]
    assert tags.count("html") == tags.count("body") == tags.count("main") == 1
    assert not {"script", "link", "iframe", "object", "base"} & set(tags)
    loaded = [named[key] for _, named in page.elements for key in ("src", "href") if key in named]
    assert all(value.startswith(("data:image/svg+xml;base64,", "#")) for value in loaded)
    assert not re.search(r"@import|url\(|https?:", page.source)


def test_a_reader_of_elements_finds_figures_described_tables_named_and_headings_scoped(page):
    images = [named for tag, named in page.elements if tag == "img"]
    assert len(images) == 9 and all(len(named["alt"]) > 40 for named in images)
    regions = [named for _, named in page.elements if named.get("role") == "region"]
    assert {named["aria-label"] for named in regions} == set(page.tables)
    assert all(named["tabindex"] == "0" for named in regions)
    heads = [named for tag, named in page.elements if tag == "th"]
    assert {named["scope"] for named in heads} == {"col", "row", "colgroup"}


def test_every_link_of_the_contents_leads_to_a_section(page):
    links = [named["href"][1:] for tag, named in page.elements if tag == "a"]
    anchors = [named["id"] for tag, named in page.elements if tag == "section"]
    assert anchors == [section.name for section in report.SECTIONS]
    assert links[: len(anchors)] == anchors


def test_every_section_has_a_template_and_every_template_a_section():
    templates = {path.name for path in (REPORT / "sections").iterdir()}
    assert templates == {f"{section.name}.html.j2" for section in report.SECTIONS}


def test_no_cell_of_any_table_is_blank(page):
    for title in page.tables:
        for row in page.rows(title):
            assert all(row), (title, row)


def test_the_same_tables_give_the_same_page(folder, page):
    report_render.main(arguments(folder))
    assert (folder / "report.html").read_text(encoding="utf-8") == page.source


@pytest.mark.parametrize(
    "name", ["speedup.csv", "accuracy.csv", "learning.svg", "manifest.json", "topology.txt"]
)
def test_a_file_that_does_not_exist_is_named(folder, name):
    (found,) = folder.rglob(name)
    away = found.rename(found.with_name("away"))
    try:
        with pytest.raises(UserError, match=re.escape(name)):
            report_render.main(arguments(folder))
    finally:
        away.rename(found)


def test_the_head_says_what_ran_on_what(page):
    assert "images (cifar10-images.tar.xz): 40,000 training and 10,000 test images" in page.text
    for fact in (
        "NVIDIA H200",
        "node01",
        "torch 2.11.0, CUDA 13.0, NCCL 2.28.9, driver 580.95.05",
        "2025-11-20 09:00 UTC to 2025-11-20 10:30 UTC",
        "1fc5442e0c6f",
        "GPUs 1, 2, 4; batch sizes per GPU 32, 128, 512, 2048, 16384; 3 seeds",
        "SGD, learning rate 0.1",
        "course: loader_workers 2; fast: precision bf16",
    ):
        assert fact in page.text


def test_the_head_names_what_was_used_and_a_model_once(tmp_path):
    tables = report_tables.make()
    runs = tables["provenance"]
    runs.loc[runs["status"] == "infeasible", "recipe_options"] = "asked for"
    runs.loc[runs["status"] == "ok", "model"] = "resnet18-cifar, width 64, 11,173,962 parameters"
    runs["device_names"] = ""
    found = section(tmp_path, "method", tables).text
    assert "course: loader_workers 2; fast: precision bf16" in found
    assert found.count("resnet18-cifar") == 1 and "11,173,962 parameters" in found
    # A GPU without a recorded name is no CPU.
    assert "on a CPU." not in found


def test_a_partial_page_lists_what_is_missing_and_is_refused_unless_asked_for(tmp_path, page):
    lay_out(tmp_path, report_tables.make(missing=True))
    with pytest.raises(UserError, match="1 cell of example are missing, the first is fast/ddp"):
        report_render.main(arguments(tmp_path))
    assert not (tmp_path / "report.html").exists()
    report_render.main(arguments(tmp_path, "--partial"))
    partial = Page((tmp_path / "report.html").read_text(encoding="utf-8"))
    banner = partial.text.partition("This report is partial.")[2]
    assert "It lacks 1 of 45 cells, and every figure that needs them:" in banner[:100]
    assert "fast/ddp, 4 GPUs, b\u00a0=\u00a032" in banner[:200]
    assert partial.row("Table 1: fast, ddp", "32")[-1] == "missing"
    assert "This report is partial" not in page.text


def test_markup_in_a_table_is_shown_and_warnings_stand_at_the_top(tmp_path, page):
    host = "<script>alert(1)</script>"
    tables = report_tables.make(device="cpu", host=host)
    tables["provenance"].loc[0, "measured_as"] = "ddp"
    shown = render(tmp_path, tables, "--side-by-side")
    assert "script" not in [tag for tag, _ in shown.elements]
    assert shown.row("Environments of the grid’s runs", "hosts") == [host]
    for words in (
        "The times here say little. Runs may have shared one machine",
        "“GPU” here means one process with 1 thread on a CPU.",
        "it was measured once, and the strategies share that run",
    ):
        assert words in shown.text and words not in page.text


def test_a_study_of_which_nothing_ran_still_has_a_page(tmp_path):
    tables = report_tables.make()
    timing = tables["timing"]
    numbers = [name for name in timing if name not in (*timing.columns[:5], "message")]
    timing[numbers] = float("nan")
    timing["status"] = "oom"
    tables["peaks"] = tables["peaks"][:0]
    tables["comparison"] = tables["comparison"][tables["comparison"]["study"] == "example"]
    page = render(tmp_path, tables | report_tables.derive(timing))
    assert "No cell has a time, so none is fastest." in page.text
    assert "There is no published study" in page.text
    assert page.row("Table 1: course, ddp", "32") == ["oom", "oom", "oom"]
