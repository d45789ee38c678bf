"""The index of stored studies."""

import shutil

import studies_render
from examples.page import Page
from examples.stored import folder_of, lay_out


def test_index_links_each_report_or_names_its_command(tmp_path):
    results = tmp_path / "results"
    lay_out(results / "replay/h200x4", "h200x4")
    for name in ("h200x4", "second"):
        (tmp_path / name).mkdir()
        for file in ("config.yaml", "manifest.json"):
            shutil.copy(folder_of("h200x4") / file, tmp_path / name)
    (results / "replay/h200x4/report.html").touch()
    studies_render.main(folder=tmp_path, results=results)
    page = Page((results / "studies.html").read_text(encoding="utf-8"))
    first, second = page.rows("Studies, what they found, and where")
    assert first[0] == "h200x4" and second[0] == "second make replay STUDY=second"
    (link,) = (
        named["href"] for tag, named in page.elements if tag == "a" and "#" not in named["href"]
    )
    assert link == "replay/h200x4/report.html"
    assert first[2].startswith("Train tuned") and first[3] == "3.68× as fast"
    assert "cannot be shown" in second[1] and set(second[2:]) == {""}
