"""A change repeats only the jobs that depend on it."""

import os
import shutil
from collections import Counter

import pytest

TABLES = ["tables_make", "report_render"]
# One job for each of its two techniques.
LARGE = ["convergence_train"] * 2
IMAGES = ["dataset_prepare", "quantize_train", "quantize_evaluate"]
NONE = {"name": "none", "recipe": "tuned", "factors": [1]}


@pytest.mark.parametrize(
    ("changes", "edited", "trained", "others"),
    [
        ({"grid.batch_sizes": [10, 20, 30]}, "", 1, TABLES),
        # A repeat measures the machine again, as it may be another one.
        ({"grid.repeats": 2}, "", 2, [*TABLES, "machine_check", "peaks_measure"]),
        ({"training.learning_rate": 0.05}, "", 2, TABLES + LARGE),
        ({"machine.share": True}, "", 2, [*TABLES, "peaks_measure"]),
        ({"machine.check": "warn"}, "workflow/scripts/scaling/instruments/machine.py", 0, []),
        ({}, "workflow/scripts/scaling/tables/timing.py", 0, TABLES),
        ({}, "workflow/scripts/scaling/figures/style.py", 0, ["report_render"]),
        ({}, "report/style.css", 0, ["report_render"]),
        ({"quantization.variants": [{"name": "w4"}]}, "", 0, [*TABLES, "quantize_evaluate"]),
        ({"convergence.accuracy_margin": 0.05}, "", 0, TABLES),
        ({"convergence.recipes": [NONE, "tuned"]}, "", 0, [*TABLES, LARGE[0]]),
        ({"convergence.recipes": [NONE]}, "", 0, TABLES),
        ({"study": "other"}, "", 0, TABLES),
        ({"grid.strategies": ["ddp", "zero1"]}, "", 0, TABLES),
        ({"dataset.seed": 1}, "", 2, IMAGES + TABLES + LARGE),
    ],
)
def test_change_repeats_only_what_depends_on_it(study, changes, edited, trained, others):
    study.configure(changes)
    if edited:
        study.edit(edited, "\nEDITED = True\n")
    always = ["study_config"] * bool(changes)
    assert study.planned() == Counter(["train_run"] * trained + others + always)


def test_lost_images_or_machine_check_repeat_alone(study):
    folder = next((study.folder / "resources/dataset").iterdir())
    lost = ["results/machine/check.json", str(folder.relative_to(study.folder) / "images.npz")]
    shutil.rmtree(folder)
    (study.folder / lost[0]).unlink()
    grid = {"parts": study.config["parts"], "grid.batch_sizes": [10, 20, 30]}
    for changes in ({"parts": ["accuracy"]}, grid):
        study.configure(changes)
        refused = study.snakemake("--dry-run")
        assert refused.returncode == 1 and f"(snakemake {' '.join(lost)})" in refused.stdout
    assert study.snakemake(*lost).returncode == 0
    planned = study.planned()
    assert planned["train_run"] == 1
    assert not planned.keys() & {"convergence_train", "peaks_measure"}


def test_touching_files_reruns_nothing(study):
    for path in study.folder.rglob("*"):
        if path.is_file() and ".snakemake" not in path.parts:
            os.utime(path)
    report = study.folder / "results/report.html"
    before = report.stat().st_mtime_ns
    again = study.snakemake()
    assert again.returncode == 0 and "Nothing to be done" in again.stdout
    assert report.stat().st_mtime_ns == before
