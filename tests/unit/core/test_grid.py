from dataclasses import replace
from pathlib import Path

from scaling.core import grid
from scaling.core.grid import Cell


def test_the_record_of_a_run_lies_where_the_contract_says():
    run = Cell("plain", "ddp", 4, 512, 0)
    expected = "results/runs/recipe~plain/strategy~ddp/gpus~4/batch_size~512/seed~0/run.json"
    assert run.record_path(Path("results/runs")) == Path(expected)
    values = {"recipe": "plain", "strategy": "ddp", "gpus": 4, "batch_size": 512, "seed": 0}
    pattern = f"results/runs/{grid.RUN_PATTERN}/run.json"
    assert pattern.format(**values, repeat="") == expected
    again = replace(run, repeat=1)
    expected = expected.replace("/run.json", "/repeat~1/run.json")
    assert again.record_path(Path("results/runs")) == Path(expected)
    assert pattern.format(**values, repeat="/repeat~1") == expected
    assert again.log_path(Path("logs")).name == "repeat~1.log"


def test_a_recipe_has_cells_with_its_own_strategies_alone():
    lists = {"strategies": ["dp", "ddp"], "gpus": [2], "batch_sizes": [32], "seeds": [0]}
    config = {
        "grid": {"recipes": ["plain", "tuned"], **lists},
        "recipes": {"plain": {"strategies": None}, "tuned": {"strategies": ["ddp", "fsdp"]}},
    }
    found = [(run.recipe, run.strategy) for run in grid.of(config)]
    assert found == [("plain", "dp"), ("plain", "ddp"), ("tuned", "ddp")]
    config["grid"]["repeats"] = 2
    assert [run.repeat for run in grid.of(config)] == [0, 1] * 3
