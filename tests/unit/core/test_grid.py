"""The runs of a grid, and their paths."""

from pathlib import Path

import pytest

from scaling.core import grid
from scaling.core.grid import Cell


def config(recipes, gpus, sizes, strategies=("ddp",), **keys):
    """Return a configuration whose grid has one seed."""
    grid = {"recipes": [*recipes], "strategies": strategies, "gpus": gpus, "batch_sizes": sizes}
    return {"parts": ["scaling"], "grid": grid | {"seeds": [0]} | keys, "recipes": recipes}


def test_one_gpu_is_measured_once_whatever_the_strategies():
    cells = grid.of(config({"plain": {}}, [1, 2], [32, 128], ["dp", "ddp", "fsdp"], repeats=2))
    alone = [cell for cell in cells if cell.gpus == 1]
    assert (len(alone), len(cells)) == (2 * 2, 2 * 2 + 3 * 2 * 2)
    path = "runs/recipe~plain/strategy~single/gpus~1/batch_size~32/seed~0/run.json"
    assert alone[0].record_path(Path("runs")) == Path(path)
    assert str(alone[0]) == "plain, 1 GPU, batch 32 per GPU, seed 0"
    assert Cell("plain", "ddp", 1, 32, 0) == Cell("plain", "", 1, 32, 0) == alone[0]


def test_recipe_is_measured_with_its_entries_of_the_grid():
    few = {"strategies": ["ddp"], "gpus": [1], "batch_sizes": [128, 512]}
    two = {"plain": {}, "few": few, "pair": {"batch_sizes": [128]}}
    cells = grid.of(config(two, [1, 2], [32, 128], ["dp", "ddp"], strong_scaling=True))
    sizes = {name: [] for name in two}
    for cell in cells:
        sizes[cell.recipe] += [(cell.strategy, cell.gpus, cell.batch_size)]
    assert sizes["few"] == [("single", 1, 128)] and len(sizes["plain"]) == 8
    pair = [(way, 2, size) for way in ("dp", "ddp") for size in (128, 64)]
    assert sizes["pair"] == [("single", 1, 128), *pair]


@pytest.mark.parametrize(
    ("gpus", "sizes", "added"),
    [
        ([1, 2], [32, 128, 512], [(2, 64)]),
        ([1, 2], [128], [(2, 64)]),
        ([1, 2, 4], [32, 256], [(4, 64)]),
        ([1, 3], [96, 384], [(3, 32)]),
        # A pair is there, none can be, and one GPU or several are not in the grid.
        ([1, 2], [32, 64], []),
        ([1, 2, 4], [32, 128, 512], []),
        ([1, 3], [32, 128], []),
        ([2, 4], [32, 128], []),
        ([1], [32, 128], []),
    ],
)
def test_strong_scaling_has_a_pair_of_cells(gpus, sizes, added):
    cells = grid.of(config({"plain": {}}, gpus, sizes, strong_scaling=True))
    plain = grid.of(config({"plain": {}}, gpus, sizes))
    more = [(cell.gpus, cell.batch_size) for cell in cells if cell not in plain]
    assert more == added


def test_strong_scaling_leaves_out_commands_of_one_batch():
    commands = {"fixed": "train {gpus}", "free": "train {gpus} {batch_size}"}
    recipes = {name: {"command": command} for name, command in commands.items()}
    made = grid.of(config(recipes, [1, 2], [128], strong_scaling=True))
    cells = [(cell.recipe, cell.gpus, cell.batch_size) for cell in made]
    whole = [(name, gpus, 128) for name in ("fixed", "free") for gpus in (1, 2)]
    assert cells == [*whole, ("free", 2, 64)]
