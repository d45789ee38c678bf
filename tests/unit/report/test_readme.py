"""README.md and docs/data.ipynb: their figures are those of a stored study, and their code runs."""

import io
import re
from contextlib import redirect_stdout
from pathlib import Path

import matplotlib.pyplot as plt
import nbformat
import pytest

from scaling.tables import schema

ROOT = Path(__file__).parents[3]
TABLES = ROOT / "tests/snapshots/expected/h100x2/tables"
PAGE = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture
def replayed(tmp_path, monkeypatch):
    """A checkout's folder after `make replay STUDY=h100x2`."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "results/replay").mkdir(parents=True)
    (tmp_path / "results/replay/h100x2").symlink_to(TABLES.parent)
    (tmp_path / "studies").symlink_to(ROOT / "studies")
    monkeypatch.chdir(tmp_path)


def test_the_rows_above_the_picture_are_those_of_the_study():
    times = schema.read("timing", schema.TABLES["timing"].path(TABLES, "h100x2"))
    cells = times.set_index(["recipe", "strategy", "gpus", "batch_size"])["epoch_seconds"]
    above = PAGE[: PAGE.index("![The first screen")]
    assert "| ResNet-18 on CIFAR-10, 128 images per GPU: seconds an epoch |" in above
    rows = re.findall(r"^\| `(\w+)`(.*) \| ([\d.]+) \| ([\d.]+) \|$", above, re.MULTILINE)
    assert [name for name, *_ in rows] == ["plain", "plain", "tuned"]
    for (recipe, words, *shown), strategy in zip(rows, ("ddp", "dp", "ddp"), strict=True):
        measured = [cells[recipe, strategy, gpus, 128] for gpus in (1, 2)]
        assert shown == [f"{seconds:#.3g}" for seconds in measured], words


def test_the_page_is_short_and_what_it_shows_is_there_and_small():
    assert len(PAGE.splitlines()) <= 120
    targets = re.findall(r"\]\(([^)#]+)", PAGE)
    assert not [target for target in targets if not (ROOT / target).exists()]
    picture = (ROOT / "docs/terminal.svg").read_text(encoding="utf-8")
    assert len(picture) <= 1_000_000 and "url(http" not in picture
    assert "The&#160;report&#160;is&#160;file://" in picture


def test_its_lines_of_pandas_print_the_epochs(replayed):
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    with redirect_stdout(io.StringIO()) as said:
        exec(code, {})
    assert re.search(r"tuned +ddp +1 +1\.89 +0\.86 +0\.59", said.getvalue())


def test_the_notebook_says_what_its_cells_print(replayed, monkeypatch):
    monkeypatch.chdir("docs")
    monkeypatch.setattr(plt, "show", plt.close)
    book = nbformat.read(ROOT / "docs/data.ipynb", as_version=4)
    nbformat.validate(book)
    names = {}
    for cell in book.cells:
        if cell.cell_type == "code":
            with redirect_stdout(io.StringIO()) as said:
                exec(cell.source, names)
            kept = [output.text for output in cell.outputs if output.output_type == "stream"]
            assert "".join(kept) == said.getvalue(), cell.source
    assert len(book.cells) <= 12
