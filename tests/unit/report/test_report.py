"""The page a reader opens: what it says, where, and that it needs nothing but itself."""

import html
import re

import pytest

import report_render
from examples import stored
from examples.stored import FLAGSHIP, arguments, lay_out, render
from scaling.core.errors import UserError
from scaling.core.grid import Cell
from scaling.report.views import PARTS, QUESTIONS
from scaling.tables import schema

CELL = Cell("plain", "ddp", 2, 512, 0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What the pipeline leaves of the study, and a log of one of its cells."""
    place = tmp_path_factory.mktemp("study")
    lay_out(place)
    log = CELL.log_path(place / "logs")
    log.parent.mkdir(parents=True)
    log.write_text("rank 0: <b>killed</b>\n")
    return place


@pytest.fixture(scope="module")
def page(folder):
    return render(folder, FLAGSHIP, "--replayed-from", str(folder))


def test_the_page_is_one_document_that_loads_nothing(page):
    assert page.source.count("<!DOCTYPE html>") == 1
    assert not {"script", "link", "iframe", "object", "base", "img"} & {t for t, _ in page.elements}
    loaded = [named[key] for _, named in page.elements for key in ("src", "href") if key in named]
    assert all(value.startswith(("data:", "#")) for value in loaded)
    assert not re.search(r"@import|url\(|https?:(?!//www.w3.org/2000/svg)", page.source)


def test_every_part_of_the_report_has_its_tables():
    assert set(PARTS) == {one.name for one in QUESTIONS} | {"limits"}


def test_what_was_not_measured_is_one_line(tmp_path):
    lay_out(tmp_path, "h200x1")
    page = render(tmp_path, "h200x1")
    absent = [
        named["id"] for tag, named in page.elements if named.get("class") == "question absent"
    ]
    assert absent == ["Q2", "Q3.1", "Q3.2", "Q5", "Q6", "Q7", "B"]
    assert (
        page.text.count("Not part of this study") == 1 and page.text.count("synchronization") >= 3
    )


def test_a_cell_has_its_epochs_record_command_and_the_end_of_its_log(page):
    cell = page.source[page.source.index('<aside class="cell" id="cell-plain-ddp-2-512"') :]
    cell = cell[: cell.index("</aside>")]
    assert 'title="epoch 3, rank 1: ' in cell and cell.count('download="run.json') == 3
    assert "snakemake results/runs/recipe~plain/strategy~ddp/gpus~2/batch_size~512/seed~0" in cell
    assert '<pre tabindex="0">rank 0: &lt;b&gt;killed&lt;/b&gt;\n</pre>' in cell


def test_the_answers_in_markdown_are_those_of_the_page(page, folder):
    source = (folder / "answers.md").read_text(encoding="utf-8")
    assert "&#39;" not in source
    text = html.unescape(source)
    found = re.search(r"## Q2: .*?(?=\n## )", text, re.DOTALL).group()
    answer, *_, table, title, figure = found.split("\n\n")[1:]
    assert answer in page.text and "**Supported** for tuned/ddp, 2 GPUs: " in found
    assert title.startswith("*Table 1: seconds of an epoch T(N, b) on N GPUs, b images each; ")
    assert len(table.splitlines()) == 1 + len(page.rows(title.strip("*")))
    # 1.892 s on one GPU, 1.017 s on two
    (two,) = [line for line in table.splitlines() if line.startswith("|tuned · ddp|2|")]
    assert two.startswith("|tuned · ddp|2|1.02 (1.01–1.02)|1.86× (1.84–1.89)|")
    assert (folder / re.search(r"\((.*)\)", figure)[1]).exists()


@pytest.mark.parametrize("name", ["speedup.csv", "learning.svg"])
def test_a_file_that_does_not_exist_is_named(folder, name):
    (found,), asked = folder.rglob(name), arguments(folder)
    away = found.rename(found.with_name("away"))
    try:
        with pytest.raises(UserError, match=re.escape(name)):
            report_render.main(asked)
    finally:
        away.rename(found)


def test_a_page_of_part_b_alone_has_neither_limits_nor_tables_of_cells(tmp_path):
    name = "quantization-cifar10"
    lay_out(tmp_path, name)
    page = render(tmp_path, name, "--partial", "True")
    taken_out = {named["download"] for _, named in page.elements if "download" in named}
    assert taken_out and all(one.startswith("quantization") for one in taken_out)
    assert "Physical limits" not in page.text


def test_a_partial_page_lists_what_is_missing_and_is_refused_unless_asked_for(tmp_path):
    host = "<script>alert(1)</script>"
    lay_out(tmp_path, "cpu")
    for name, columns in (("timing", {"status": "missing"}), ("provenance", {"hosts": host})):
        path = schema.TABLES[name].path(tmp_path / "tables", stored.study("cpu").study)
        table = schema.read(name, path)
        table.loc[0, list(columns)] = list(columns.values())
        schema.write(name, table, path)
    with pytest.raises(UserError, match=r"1 cell of .* are missing, the first is plain/ddp"):
        render(tmp_path, "cpu")
    partial = render(tmp_path, "cpu", "--partial", "True", "--side-by-side", "True")
    assert "script" not in [tag for tag, _ in partial.elements]
    assert host in partial.text
    for words in (
        "Partial: 1 cells are missing",
        "Cells ran at the same time on one machine",
        "“GPU” means a process on a CPU here",
    ):
        assert words in partial.text
