"""Which tables a study has, by the records that it has."""

from pathlib import Path

import pytest
import yaml

from scaling.config import stored
from scaling.tables.made import Made

ROOT = Path(__file__).parents[3]


@pytest.fixture
def config():
    return yaml.safe_load((ROOT / "config/demo.yaml").read_text())


def test_a_study_that_is_measured_has_all_records_it_asks_for(config):
    made = Made(config, "nowhere", is_stored=False)
    assert made.runs({}) == [f"nowhere/{path}" for path in stored.records(config)["runs"]]
    assert "<results>/tables/remedies.csv" in made.tables_of(runs=False)
    config["convergence"]["recipes"] = []
    without = Made(config, "nowhere", is_stored=False).tables_of(runs=False)
    assert "<results>/tables/remedies.csv" not in without


def test_one_that_is_told_in_part_has_those_that_are_there(config, tmp_path):
    config["partial"] = True
    first, second, *_ = stored.records(config)["runs"]
    (tmp_path / second).parent.mkdir(parents=True)
    (tmp_path / second).touch()
    made = Made(config, str(tmp_path), is_stored=False)
    assert made.runs({}) == [str(tmp_path / second)] == made.there([first, second])
    assert made.records["convergence"] == []
    assert "<results>/tables/demo/timing.csv" in made.tables_of(runs=True)
