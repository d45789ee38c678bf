"""What is compiled once serves later runs."""

from training_runs import run, tuned

MODEL = """
from torch import nn
def small(classes):
    return nn.Sequential(nn.Flatten(), nn.Linear(3072, classes))
"""


def test_compiled_graphs_serve_later_runs(images, tmp_path, monkeypatch):
    (tmp_path / "small.py").write_text(MODEL)
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "cache"))
    options = tuned(compile=True) | {"gpus": 2, "model": f"{tmp_path}/small.py:small"}

    def compiled():
        made = run(images, tmp_path / "run.json", **options)
        applied = made["training"]["recipe_applied"]
        assert applied["compile"] is True and applied["notes"] == []
        assert applied["precision"] == "bf16"
        assert {(row["samples"], row["iterations"]) for row in made["epochs"]} == {(20, 2)}
        return made["training"]["compiled_graphs"], made["model"]["parameters_sha256"]

    # Both ranks compile the same at once.
    first, parameters = compiled()
    assert first["made"] > 0
    assert compiled() == ({"kept": sum(first.values()), "made": 0}, parameters)
