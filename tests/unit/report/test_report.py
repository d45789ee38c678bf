"""The page a reader opens: what it says, where, and that it needs nothing but itself."""

import html
import json
import re

import pytest

import report_render
from examples import convergence_records, report_tables
from examples.report_page import arguments, lay_out, render
from scaling.core.errors import UserError
from scaling.core.grid import Cell
from scaling.report.report import APPENDIX, QUESTIONS
from scaling.report.views import PARTS

CELL = Cell("fast", "ddp", 4, 512, 0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The results of a study with the tables of its grid and techniques, and one run's record."""
    made = report_tables.make()
    place = tmp_path_factory.mktemp("study")
    lay_out(place, made | convergence_records.tables())
    record = CELL.record_path(place / "runs")
    record.parent.mkdir(parents=True)
    epochs = [
        {"rank": rank, "epoch": epoch, "role": "measured", "seconds": 0.3 + 0.01 * epoch}
        for epoch in (2, 3)
        for rank in (0, 1)
    ]
    record.write_text(json.dumps({"epochs": epochs}))
    log = CELL.log_path(place / "logs")
    log.parent.mkdir(parents=True)
    log.write_text("rank 0: <b>killed</b>\n")
    return place


@pytest.fixture(scope="module")
def page(folder):
    return render(folder, "--replayed-from", str(folder))


def test_the_page_is_one_document_that_loads_nothing(page):
    assert page.source.count("<!DOCTYPE html>") == 1
    assert not {"script", "link", "iframe", "object", "base", "img"} & {t for t, _ in page.elements}
    loaded = [named[key] for _, named in page.elements for key in ("src", "href") if key in named]
    assert all(value.startswith(("data:", "#")) for value in loaded)
    assert not re.search(r"@import|url\(|https?:(?!//www.w3.org/2000/svg)", page.source)


def test_every_part_of_the_report_has_its_tables():
    assert set(PARTS) - {"compare"} == {one.name for one in QUESTIONS} | set(APPENDIX)


def test_the_first_screen_answers_and_what_was_not_measured_is_one_line(page):
    assert page.visible_words < 1500
    first = page.text[: page.text.index("The lab’s questions")]
    assert "1.76 s an epoch: the fastest that learns" in first and "Every cell" in first
    absent = [
        named["id"] for tag, named in page.elements if named.get("class") == "question absent"
    ]
    assert absent == ["Q5", "Q6", "Q7"]
    assert (
        page.text.count("Not part of this study") == 1 and page.text.count("synchronization") >= 3
    )


def test_a_cell_has_its_epochs_record_and_command(page):
    cell = page.source[page.source.index('<aside class="cell" id="cell-fast-ddp-4-512"') :]
    cell = cell[: cell.index("</aside>")]
    assert 'title="epoch 3, rank 1: 0.330 s"' in cell and 'download="run.json"' in cell
    assert "snakemake results/runs/recipe~fast/strategy~ddp/gpus~4/batch_size~512/seed~0" in cell
    assert '<pre tabindex="0">rank 0: &lt;b&gt;killed&lt;/b&gt;\n</pre>' in cell


def test_the_answers_in_markdown_are_those_of_the_page(page, folder):
    source = (folder / "answers.md").read_text(encoding="utf-8")
    assert "&#39;" not in source
    text = html.unescape(source)
    found = re.search(r"## Q2: .*?(?=\n## )", text, re.DOTALL).group()
    answer, *_, table, title, figure = found.split("\n\n")[1:]
    assert answer in page.text and "**Supported** for plain/ddp, 4 GPUs: " in found
    assert title == "*Table 1: seconds of an epoch T(N, b), and speedup T(1, b) / T(N, b)*"
    assert len(table.splitlines()) == 1 + len(page.rows(title.strip("*")))
    # 9.8 s on one GPU, 3.1 s on four
    (four,) = [line for line in table.splitlines() if line.startswith("|plain · ddp|4|")]
    assert four.startswith("|plain · ddp|4|3.10 (3.04–3.16)|3.16× (3.04–3.29)|")
    assert (folder / re.search(r"\((.*)\)", figure)[1]).exists()


@pytest.mark.parametrize("name", ["speedup.csv", "learning.svg", "manifest.json"])
def test_a_file_that_does_not_exist_is_named(folder, name):
    (found,), asked = folder.rglob(name), arguments(folder)
    away = found.rename(found.with_name("away"))
    try:
        with pytest.raises(UserError, match=re.escape(name)):
            report_render.main(asked)
    finally:
        away.rename(found)


def test_a_page_of_part_b_alone_has_neither_limits_nor_tables_of_cells(tmp_path):
    tables = report_tables.make()
    tables["timing"] = tables["timing"].assign(status="missing", epoch_seconds=float("nan"))
    of_cells = {"timing", "provenance", "peaks", "quantization"}
    tables |= {name: table.head(0) for name, table in tables.items() if name not in of_cells}
    lay_out(tmp_path, tables)
    page = render(tmp_path, "--partial", "yes")
    taken_out = {named["download"] for _, named in page.elements if "download" in named}
    assert taken_out == {"quantization.csv"}
    assert "Physical limits" not in page.text


def test_a_partial_page_lists_what_is_missing_and_is_refused_unless_asked_for(tmp_path):
    host = "<script>alert(1)</script>"
    tables = report_tables.make(device="cpu", host=host, missing=True)
    lay_out(tmp_path, tables)
    with pytest.raises(UserError, match="1 cell of example are missing, the first is fast/ddp"):
        render(tmp_path)
    partial = render(tmp_path, "--partial", "yes", "--side-by-side", "yes")
    assert "script" not in [tag for tag, _ in partial.elements]
    assert partial.row("Environments of the runs", "hosts") == [host]
    for words in (
        "Partial: 1 cells are missing",
        "Runs may have shared one machine",
        "“GPU” means a process on a CPU here",
    ):
        assert words in partial.text
