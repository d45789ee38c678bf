"""The command that draws any figure there is, and what it refuses."""

from pathlib import Path

import pytest

import figures_draw
from examples import convergence_records, quantization_example, report_tables
from scaling.figures import style
from scaling.figures.registry import FIGURES
from scaling.tables import schema

CAPTIONS = Path(__file__).parents[3] / "report/captions"


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """A folder with every table that a figure is drawn from."""
    folder = tmp_path_factory.mktemp("study")
    made = report_tables.make()
    made["quantization_histograms"] = quantization_example.histograms()
    known = {"kernel_class": "products", "seconds": 2e-3, "least_seconds": 1e-3}
    made["step_classes"] = made["timing"].head(1).assign(**known)
    # Few cells, as drawing takes long.
    for name in ("timing", "speedup", "communication", "accuracy"):
        made[name] = made[name][made[name]["batch_size"] == 32]
    report_tables.write(folder, made | convergence_records.tables())
    return folder / "tables"


def draw(name, tables, folder, study=report_tables.STUDY):
    places = (
        schema.TABLES[table].path(tables, report_tables.STUDY) for table in FIGURES[name].tables
    )
    made = [str(path) for path in places if path.exists()]
    asked = ["--figures", name, "--study", study, "--output", str(folder)]
    figures_draw.main([*asked, "--tables", *made])
    return (folder / f"{name}.svg").read_text()


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_has_a_caption_and_is_drawn_from_its_tables(name, tables, tmp_path):
    assert (CAPTIONS / f"{name}.rst").exists()
    drawn = draw(name, tables, tmp_path)
    assert "dc:date" not in drawn
    assert "<title>" in drawn or FIGURES[name].tables == ("quantization_histograms",)


def test_the_same_tables_give_the_same_file_and_two_figures_share_no_clip_path(tables, tmp_path):
    names = ("speedup", "speedup", "learning")
    one, again, other = (draw(name, tables, tmp_path) for name in names)
    assert one == again
    ids, others = ({part[:12] for part in svg.split('clipPath id="')[1:]} for svg in (one, other))
    assert ids and not ids & others


def test_only_the_runs_of_the_chosen_study_are_drawn(tables, tmp_path):
    assert draw("learning", tables, tmp_path, study="other") == style.EMPTY


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_of_tables_without_rows_or_of_none_is_empty(name, tmp_path):
    assert draw(name, tmp_path, tmp_path / "none") == style.EMPTY
    for table in FIGURES[name].tables:
        path = schema.TABLES[table].path(tmp_path, report_tables.STUDY)
        schema.write(table, schema.frame(table), path)
    assert draw(name, tmp_path, tmp_path / "empty") == style.EMPTY
