"""The examples in docs/extending.md and docs/own_trainer.md, and use by another workflow."""

import json
import re
import shutil
import subprocess
import sys

import pandas as pd
import pytest
import yaml

from examples.configurations import OWN_FILES
from small_study import ROOT, TINY, Study, forked

PAGE = (ROOT / "docs/extending.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"```python\n# (\w+\.py)\n(.*?)```", PAGE, re.DOTALL))
CONFIGURATIONS = [*map(yaml.safe_load, re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL))]


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    own = tmp_path_factory.mktemp("own")
    for name, text in FILES.items():
        (own / name).write_text(text)
    own_grid = {"dataset": {}, "grid.gpus": [1, 2], "grid.batch_sizes": [10]}
    made = Study(tmp_path_factory.mktemp("study"), TINY | own_grid)
    for keys in CONFIGURATIONS:
        for section, values in keys.items():
            if section == "plugins":
                made.config["plugins"] = [str(own / name) for name in values]
            else:
                made.config.setdefault(section, {}).update(values)
    made.config["model"]["name"] = f"{own}/{made.config['model']['name']}"
    made.configure({"recipes.plain.loader_workers": 0, "parts": ["scaling", "proofs"]})
    made.own = own
    return made


def test_own_model_strategy_recipe_and_dataset_are_measured(study):
    cells = [
        {"recipe": "adam", "strategy": "ddp_fp16", "gpus": 2, "batch_size": 10},
        {"recipe": "plain", "strategy": "ddp_fp16", "gpus": 2, "batch_size": 10},
        {"recipe": "bf16", "strategy": "ddp", "gpus": 2, "batch_size": 10},
    ]
    finished = study.snakemake(*(study.target(**cell) for cell in cells))
    assert finished.returncode == 0, finished.stdout
    adam, plain, bf16 = (json.loads(study.record(**cell).read_text()) for cell in cells)
    assert adam["status"] == plain["status"] == bf16["status"] == "ok"
    assert bf16["communication"]["sent_share"] == 0.5
    assert adam["model"]["name"].endswith("my_model.py:small")
    # 3·4·9 + 4 of the convolution, 2·4 of the norm, 4·2 + 2 of the last layer.
    assert adam["model"]["parameters"] == 130
    assert adam["model"]["flops_per_image"] > 0
    assert adam["dataset"]["source"] == "two_greys" and adam["dataset"]["image_shape"][0] == 48
    assert adam["training"]["recipe_options"]["adam_rate"] == 0.001
    assert adam["epochs"][-1]["train_loss"] != plain["epochs"][-1]["train_loss"]


def test_edit_of_own_file_repeats_only_what_uses_it(study):
    cell = {"strategy": "ddp_fp16", "gpus": 2, "batch_size": 10}
    targets = [study.target(recipe=recipe, **cell) for recipe in ("adam", "plain")]
    for name in FILES:
        with (study.own / name).open("a") as file:
            file.write("\nMORE = 1\n" if name == "my_recipe.py" else "\n# A comment.\n")
    assert study.planned(*targets) == {"train_run": 1}


COMMAND = ["--profile", "profiles/local", "--cores", "2", "--configfile", "config/scaling.yaml"]
COMMAND += ["mine.yaml", "quick.yaml"]
QUICK = {
    "grid": {"batch_sizes": [512], "strong_scaling": False},
    "training": {"measured_epochs": 3, "warmup_seconds": 0.0, "measured_seconds": 0.0},
    "interconnect": {"message_bytes": [4096], "warmup": 1, "repeats": 3, "iterations": 1},
    "peaks": {"matrix_sizes": [64], "copy_bytes": 1000, "sustained_seconds": 0.0},
}
"""Changes that make measurements take seconds: one batch size, few repeats."""


def test_own_script_has_a_report_and_its_edit_repeats_it(tmp_path):
    folder = Study(tmp_path / "copy", {}).folder
    for name, text in (OWN_FILES | {"quick.yaml": yaml.safe_dump(QUICK)}).items():
        (folder / name).write_text(text)
    said = forked(COMMAND, folder)
    assert said.returncode == 0, said.stdout
    paths = sorted((folder / "results/runs").rglob("run.json"))
    records = [json.loads(path.read_text()) for path in paths]
    assert [record["status"] for record in records] == ["ok"] * 2
    assert [record["cell"]["strategy"] for record in records] == ["own", "single"]
    speedups = (folder / "results/tables/mine/speedup.csv").read_text()
    assert speedups.count("\nmine,,1,") == speedups.count("\nmine,own,2,") == 1
    page = (folder / "results/report.html").read_text()
    assert not re.search(r"\bnan\b", re.sub(r"<svg.*?</svg>", "", page, flags=re.DOTALL))
    assert not (folder / "resources/dataset/cifar10").exists()
    with (folder / "train.py").open("a") as script:
        script.write("print('the end')\n")
    again = forked([*COMMAND, "-n"], folder)
    assert re.search(r"train[ _]command\s+2", again.stdout), again.stdout
    assert "1 other measurement" not in again.stdout and "peaks" not in again.stdout


CHANGES = re.findall(r"```diff\n# (\S+)\n(.*?)```", PAGE, re.DOTALL)
"""Changes that the page shows: a file, and lines with + and -."""
ADDED_TESTS = [
    *("tests/unit/models/test_tiny.py", "tests/unit/registry/test_registry.py"),
    "tests/unit/claims/test_q1_to_q3.py::test_waits_are_compared_between_the_ends",
    "tests/unit/figures/test_figures.py::test_figure_has_width_and_colours_of_the_page[waits]",
]
REPLAYED = "h200x2-models"


def change(path, lines):
    """Apply the lines of a diff where they fit in the file, which is one place, or append them."""
    old, new = ("".join(re.findall(rf"^[{one}](.*\n)", lines, re.MULTILINE)) for one in "-+")
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    # The last line may be the beginning of one.
    assert not old or text.count(old[:-1]) == 1, (path, old)
    path.write_text(text.replace(old[:-1], new[:-1]) if old else text + new, encoding="utf-8")


def test_project_is_extended_in_as_many_files_as_documented(tmp_path):
    study = Study(tmp_path / "copy", {})
    for name in ("unit", "examples", "snapshots"):
        shutil.copytree(ROOT / "tests" / name, study.folder / "tests" / name)
    for path in (ROOT / "tests").glob("*.py"):
        shutil.copy(path, study.folder / "tests")
    most = [int(row.split("|")[2]) for row in re.findall(r"^\| an? \w+ .*", PAGE, re.MULTILINE)]
    assert most == [5, 4, 1, 4, 2, 2, 1]
    for path, lines in CHANGES:
        change(study.folder / path, lines)
    tests = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *ADDED_TESTS]
    done = subprocess.run(tests, cwd=study.folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    planned = forked(["-n", "--configfile", "config/demo.yaml"], study.folder).stdout
    assert "recipe~bucket100/strategy~ddp/gpus~2" in planned, planned
    assert "remedy~nesterov/global_batch~32" in planned
    replayed = forked(["--cores", "2", "--config", f"replay={REPLAYED}"], study.folder)
    assert replayed.returncode == 0, replayed.stdout
    results = study.folder / "results/replay" / REPLAYED
    assert (results / f"figures/{REPLAYED}/waits.svg").stat().st_size > 1000
    assert '"Q1-waits-tuned"' in (results / "tables/claims.json").read_text()
    assert "Samples per second" in (results / "report.html").read_text()
    pace = pd.read_csv(results / f"tables/{REPLAYED}/pace.csv")
    assert (pace["samples_per_second"].dropna() > 0).any()


SNAKEFILE = """
configfile: "mine.yaml"

module study:
    snakefile: "{home}/Snakefile"
    config: config

use rule * from study
"""
TIMING = "results/tables/mine/timing.csv"
MINE = {
    "study": "mine",
    "device": "cpu",
    "dataset": {"source": "synthetic", "train_images": 60, "test_images": 20},
    "model": {"width": 1},
    "grid": {"recipes": ["tuned"], "strategies": ["ddp"], "gpus": [1], "batch_sizes": [10]},
    # Not our recipe of that name, nor any of its options.
    "recipes": {"tuned": {"engine": "eager", "loader_workers": 0}},
    "training": {"measured_epochs": 3, "measured_seconds": 0.0, "instrumented_iterations": 2},
    "peaks": {"matrix_sizes": [64], "copy_bytes": 1000, "sustained_seconds": 0.0},
    "parts": ["scaling"],
}


def test_another_workflow_uses_all_rules(new_study, tmp_path_factory):
    home, folder = new_study().folder, tmp_path_factory.mktemp("another workflow")
    (folder / "Snakefile").write_text(SNAKEFILE.format(home=home))
    (folder / "mine.yaml").write_text(yaml.safe_dump(MINE))
    done = forked(["--cores", "2", TIMING], folder)
    assert done.returncode == 0, done.stdout
    assert (folder / TIMING).exists() and not (home / "results").exists()
    rest = forked(["--dry-run"], folder)
    assert "rule report_render" in rest.stdout and "rule train_run" not in rest.stdout
