"""What can be deleted, deleted: the rest plans, lints and tells a stored study as before."""

import shutil
import subprocess
import sys

import pytest

import snapshots
from small_study import forked

APART = [
    "grader",
]
"""Packages below workflow/scripts, without their tests."""
STORED = "quantization-resnet18"
IMPORTS = """
import importlib, pathlib, sys
sys.path.insert(0, "workflow/scripts")
for script in pathlib.Path("workflow/scripts").glob("*.py"):
    importlib.import_module(script.stem)
"""


@pytest.mark.parametrize("package", APART)
def test_without_a_package_the_rest_works(package, new_study):
    folder = new_study().folder
    shutil.rmtree(folder / "workflow/scripts" / package)
    planned = forked(["-n", "--configfile", "config/demo.yaml"], folder)
    assert planned.returncode == 0 and "rule report_render" in planned.stdout, planned.stdout
    linted = forked(["--lint"], folder)
    assert linted.returncode == 0, linted.stdout
    imported = subprocess.run(
        [sys.executable, "-c", IMPORTS], cwd=folder, capture_output=True, text=True
    )
    assert imported.returncode == 0, imported.stderr
    replayed = forked(["--cores", "2", "--config", f"replay={STORED}"], folder)
    assert replayed.returncode == 0, replayed.stdout
    results = folder / "results/replay" / STORED
    assert snapshots.compare(STORED, snapshots.texts(STORED, results)) == []
