"""What is compiled once serves later runs; what is damaged is compiled anew."""

import pytest

from training_runs import run, tuned

MODEL = """
from torch import nn
def small(classes):
    return nn.Sequential(nn.Flatten(), nn.Linear(3072, classes))
"""


@pytest.fixture
def compiles(images, tmp_path, monkeypatch):
    """Trains a small compiled model, and says how it was."""
    (tmp_path / "small.py").write_text(MODEL)
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "cache"))

    def once(name):
        options = tuned(compile=True) | {"gpus": 2, "model": f"{tmp_path}/small.py:small"}
        made = run(images, tmp_path / name, **options)
        applied = made["training"]["recipe_applied"]
        assert applied["compile"] is True and applied["notes"] == []
        return made["training"]["compiled_graphs"], made["model"]["parameters_sha256"]

    return once


def test_graphs_are_kept_and_damaged_ones_are_made_again(compiles, tmp_path):
    # Both ranks compile the same at once.
    first, parameters = compiles("first.json")
    assert first["made"] > 0
    assert compiles("second.json") == ({"kept": sum(first.values()), "made": 0}, parameters)
    for path in filter(lambda path: path.is_file(), (tmp_path / "cache").rglob("*")):
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    damaged, still = compiles("damaged.json")
    assert damaged["made"] > 0 and still == parameters
