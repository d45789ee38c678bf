"""The README's headline table is what the stored study gives."""

import re
from pathlib import Path

import pytest
import yaml

from scaling import grid
from scaling.record import read_record
from scaling.timing import timing

ROOT = Path(__file__).parents[2]
STUDY = ROOT / "studies/h200x2"
ROW = re.compile(r"^\| (\w+), (\w+), (\d+) GPUs? \| (.*) \|$", re.MULTILINE)


def headline():
    """What the README prints, by (recipe, strategy, gpus, batch size)."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    sizes = yaml.safe_load((STUDY / "config.yaml").read_text())["grid"]["batch_sizes"]
    return {
        (recipe, strategy, int(gpus), size): shown
        for recipe, strategy, gpus, cells in ROW.findall(text)
        for size, shown in zip(sizes, cells.split(" | "), strict=True)
    }


@pytest.fixture(scope="module")
def measured():
    config = yaml.safe_load((STUDY / "config.yaml").read_text())
    runs = grid.expand(**config["grid"])
    return timing([(run, read_record(run.record_path(STUDY / "runs"))) for run in runs])


def test_the_headline_has_the_recipes_and_strategies_of_the_study(measured):
    shown = {key[:3] for key in headline()}
    several = measured[(measured["gpus"] > 1) | (measured["strategy"] == "ddp")]
    assert shown == set(several[["recipe", "strategy", "gpus"]].itertuples(index=False, name=None))


def test_every_figure_of_the_headline_is_that_of_the_records(measured):
    cells = measured.set_index(["recipe", "strategy", "gpus", "batch_size"])
    for key, shown in headline().items():
        cell = cells.loc[key]
        if cell["status"] == "ok":
            assert shown == f"{cell['epoch_seconds']:#.3g}", key
        else:
            assert shown == cell["status"], key
