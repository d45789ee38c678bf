"""The workflow as a module of another one, as Snakemake's catalog has it."""

import yaml

from small_study import forked

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


def test_another_workflow_uses_all_rules_from_a_folder_of_its_own(new_study, tmp_path_factory):
    home, folder = new_study().folder, tmp_path_factory.mktemp("another workflow")
    (folder / "Snakefile").write_text(SNAKEFILE.format(home=home))
    (folder / "mine.yaml").write_text(yaml.safe_dump(MINE))
    done = forked(["--cores", "2", TIMING], folder)
    assert done.returncode == 0, done.stdout
    assert (folder / TIMING).exists() and not (home / "results").exists()
    rest = forked(["--dry-run"], folder)
    assert "rule report_render" in rest.stdout and "rule train_run" not in rest.stdout
