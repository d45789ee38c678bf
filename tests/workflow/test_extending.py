"""The examples of docs/extending.md, run as they stand there, with files outside the project."""

import json
import re
from pathlib import Path

import pytest
import yaml

from small_study import TINY, Study

PAGE = (Path(__file__).parents[2] / "docs/extending.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"```python\n# (\w+\.py)\n(.*?)```", PAGE, re.DOTALL))
CONFIGURATIONS = [
    yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
]


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    own = tmp_path_factory.mktemp("own")
    for name, text in FILES.items():
        (own / name).write_text(text)
    own_grid = {"grid.gpus": [1, 2], "grid.batch_sizes": [10]}
    made = Study(tmp_path_factory.mktemp("study"), TINY | own_grid)
    for keys in CONFIGURATIONS:
        for section, values in keys.items():
            if section == "plugins":
                made.config["plugins"] = [str(own / name) for name in values]
            else:
                made.config.setdefault(section, {}).update(values)
    made.config["model"]["name"] = f"{own}/{made.config['model']['name']}"
    made.configure({"recipes.plain.loader_workers": 0})
    made.own = own
    return made


def test_a_model_a_strategy_a_recipe_and_a_dataset_of_ones_own_are_measured(study):
    cells = [
        {"recipe": "adam", "strategy": "ddp_fp16", "gpus": 2, "batch_size": 10},
        {"recipe": "plain", "strategy": "ddp_fp16", "gpus": 2, "batch_size": 10},
        {"recipe": "bf16", "strategy": "ddp", "gpus": 2, "batch_size": 10},
    ]
    paths = [study.record(**cell) for cell in cells]
    finished = study.snakemake(*(str(path.relative_to(study.folder)) for path in paths))
    assert finished.returncode == 0, finished.stdout
    assert "Part B is left out" in finished.stdout
    adam, plain, bf16 = (json.loads(path.read_text()) for path in paths)
    assert adam["status"] == plain["status"] == bf16["status"] == "ok"
    assert bf16["communication"]["sent_share"] == 0.5
    assert adam["model"]["name"].endswith("my_model.py:small")
    # 3·4·9 + 4 of the convolution, 2·4 of the norm, 4·2 + 2 of the last layer.
    assert adam["model"]["parameters"] == 130
    assert adam["model"]["flops_per_image"] > 0
    assert adam["dataset"]["source"] == "two_greys" and adam["dataset"]["image_shape"][0] == 48
    assert adam["training"]["recipe_options"]["adam_rate"] == 0.001
    assert adam["epochs"][-1]["train_loss"] != plain["epochs"][-1]["train_loss"]


def test_an_edit_of_ones_own_file_runs_what_uses_it_and_a_comment_nothing(study):
    cells = [{"recipe": "adam"}, {"recipe": "plain"}]
    paths = [study.record(**cell, strategy="ddp_fp16", gpus=2, batch_size=10) for cell in cells]
    for name in FILES:
        with (study.own / name).open("a") as file:
            file.write("\nMORE = 1\n" if name == "my_recipe.py" else "\n# A comment.\n")
    assert study.planned(*(str(path.relative_to(study.folder)) for path in paths)) == {
        "train_run": 1
    }
