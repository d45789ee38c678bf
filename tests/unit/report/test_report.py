"""The page of the report, its answers in a form's order, and the age of its records' code."""

import re

import pandas as pd
import pytest

from examples.stored import lay_out, render
from scaling.config.stored import read_config
from scaling.core import code_digest
from scaling.core.grid import Cell
from scaling.registry.engine import measuring_code
from scaling.report.page import REPORT, arranged
from scaling.report.provenance import age


def test_page_has_figures_and_a_cells_record_command_and_log(tmp_path):
    lay_out(tmp_path)
    log = Cell("plain", "ddp", 2, 512, 0).log_path(tmp_path / "logs")
    log.parent.mkdir(parents=True)
    log.write_text("rank 0: <b>killed</b>\n")
    page = render(tmp_path, replayed_from=tmp_path)
    of = {"data-cell": "tuned/ddp/2/512", "data-quantity": "speedup", "data-value": "1.9079"}
    assert ("span", of) in page.elements
    # The page loads nothing.
    assert not {"script", "link", "iframe", "object", "base", "img"} & {t for t, _ in page.elements}
    loaded = [named[key] for _, named in page.elements for key in ("src", "href") if key in named]
    assert all(value.startswith(("data:", "#")) for value in loaded)
    assert not re.search(r"@import|url\(|https?:(?!//www.w3.org/2000/svg)", page.source)
    cell = page.source[page.source.index('<aside class="cell" id="cell-plain-ddp-2-512"') :]
    cell = cell[: cell.index("</aside>")]
    assert cell.count('download="run.json') == 1
    assert re.search("snakemake --cores all --configfile .*config.yaml --force -- results", cell)
    assert "-- results/runs/recipe~plain/strategy~ddp/gpus~2/batch_size~512/seed~0" in cell
    assert '<pre tabindex="0">rank 0: &lt;b&gt;killed&lt;/b&gt;\n</pre>' in cell


def test_page_warns_of_configurations_side_by_side(tmp_path):
    lay_out(tmp_path, "cpu")
    words = "Configurations ran at the same time on one machine"
    assert words in render(tmp_path, "cpu", side_by_side=True).text


ANSWERS = "# A study\n\n## Q2: How?\n\nSo.\n\n## Q1: Why?\n\nThus.\n\n## Q7: What?\n\nNo.\n\n"
ANSWERS += "## Part B: Which?\n\nThis.\n"


def test_answers_follow_the_order_of_a_form():
    text = arranged(ANSWERS, read_config(REPORT / "forms.yaml")["B5"])
    heads = [one.partition("\n")[0] for one in text.split("## ")[1:]]
    found = ["Q1: Why? (10 points)", "Q2: How? (10 points)", "B1 to B5: Which? (50 points)"]
    assert [one for one in heads if ":" in one] == found
    assert "## Q3.1 (5 points)\n\nNot measured." in text
    assert text.startswith("# A study\n") and "Thus.\n" in text


NOW = code_digest.packages(*measuring_code("resident", "resnet18-cifar"))
RUN = {"status": "ok", "commit": "abc", "engine": "resident", "model": "resnet18-cifar, width 64"}
ABSENT = "its model or engine is not here to compare its code"


@pytest.mark.parametrize(
    ("packages", "changed", "words"),
    [
        (NOW, {}, "this version’s measuring code"),
        (NOW | {"training": "0" * 16}, {}, "this version measures by other code (training)"),
        (NOW | {"gone": "0" * 16}, {}, "this version measures by other code (gone)"),
        ({}, {}, "older measuring code"),
        (NOW, {"model": "gone.py:small"}, ABSENT),
        (NOW, {"model": "gone.part:small"}, ABSENT),
        (NOW, {"engine": "gone"}, ABSENT),
    ],
)
def test_age_names_the_packages_that_changed(packages, changed, words):
    assert {"training", "models", "instruments", "launch", "extras"} <= NOW.keys()
    code = "; ".join(f"{name} {digest}" for name, digest in packages.items())
    assert age(pd.DataFrame([RUN | changed | {"code_packages": code}])) == [words]
