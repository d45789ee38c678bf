"""The command that draws any figure there is, and what it refuses."""

import pytest

import figures_draw
from examples.stored import EXPECTED, ROOT
from scaling.figures import FIGURES, style
from scaling.tables import schema

CAPTIONS = (ROOT / "report/captions/figures.rst").read_text(encoding="utf-8")


def draw(name, folder, tables=None):
    """The figure of a stored study, or of what is in `tables`."""
    folder_of_tables = tables or EXPECTED / "cpu/tables"
    places = (schema.TABLES[table].path(folder_of_tables, "cpu") for table in FIGURES[name].tables)
    made = [str(path) for path in places if path.exists()]
    asked = ["--figures", name, "--output", str(folder)]
    figures_draw.main([*asked, "--tables", *made])
    return (folder / f"{name}.svg").read_text()


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_has_a_caption_and_is_drawn_from_its_tables_or_empty(name, tmp_path):
    assert f"*{name}*: " in CAPTIONS
    drawn = draw(name, tmp_path)
    assert "dc:date" not in drawn
    # No stored study has classes of kernels.
    assert ('id="axes_1"' in drawn) != (name == "step_classes")
    assert draw(name, tmp_path / "none", tmp_path) == style.EMPTY
    for table in FIGURES[name].tables:
        path = schema.TABLES[table].path(tmp_path, "cpu")
        schema.write(table, schema.frame(table), path)
    assert draw(name, tmp_path / "empty", tmp_path) == style.EMPTY


def test_the_same_tables_give_the_same_file_and_two_figures_share_no_clip_path(tmp_path):
    names = ("speedup", "speedup", "learning")
    one, again, other = (draw(name, tmp_path) for name in names)
    assert one == again
    ids, others = ({part[:12] for part in svg.split('clipPath id="')[1:]} for svg in (one, other))
    assert ids and not ids & others
