"""The command that draws any figure there is."""

import pytest

import figures_draw
from examples.stored import EXPECTED, ROOT
from scaling.figures import FIGURES, style
from scaling.tables import schema

CAPTIONS = (ROOT / "report/captions/figures.rst").read_text(encoding="utf-8")


def draw(name, folder, tables=EXPECTED / "cpu/tables"):
    """The figure of a stored study, or of what is in `tables`."""
    places = (schema.TABLES[table].path(tables, "cpu") for table in FIGURES[name].tables)
    made = [str(path) for path in places if path.exists()]
    figures_draw.main(["--figures", name, "--output", str(folder), "--tables", *made])
    return (folder / f"{name}.svg").read_text()


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_has_a_caption_and_is_drawn_from_its_tables_or_empty(name, tmp_path):
    assert f"*{name}*: " in CAPTIONS
    drawn = draw(name, tmp_path)
    # No stored study has classes of kernels.
    assert ('id="axes_1"' in drawn) != (name == "step_classes")
    assert "dc:date" not in drawn and drawn == draw(name, tmp_path / "again")
    assert draw(name, tmp_path / "none", tmp_path) == style.EMPTY


def test_two_figures_share_no_clip_path(tmp_path):
    drawn = (draw(name, tmp_path).split('clipPath id="')[1:] for name in ("speedup", "learning"))
    ids, others = ({part[:12] for part in parts} for parts in drawn)
    assert ids and not ids & others
