"""What can be deleted, deleted: the rest plans, lints and tells a stored study as before."""

import shutil
import subprocess
import sys

import pytest

import snapshots
from small_study import ROOT, forked

APART = {
    "grader": None,
    "extras/bits": {"quantization.peers": ["onnxruntime"]},
    "extras/kernels": {
        "grid.recipes": ["tuned"],
        "recipes.tuned.fused_norms": True,
        "recipes.tuned.channels_last": True,
        "device": "cuda",
    },
}
"""Packages below workflow/scripts, without their tests; what asks for them, and is then refused."""
STORED = "quantization-resnet18"
IMPORTS = """
import importlib, pathlib, sys
sys.path.insert(0, "workflow/scripts")
for script in pathlib.Path("workflow/scripts").glob("*.py"):
    importlib.import_module(script.stem)
"""


@pytest.mark.parametrize("package", APART)
def test_without_a_package_the_rest_works(package, new_study):
    study = new_study()
    folder = study.folder
    shutil.rmtree(folder / "workflow/scripts" / package)
    planned = forked(["-n", "--configfile", "config/demo.yaml"], folder)
    assert planned.returncode == 0 and "rule report_render" in planned.stdout, planned.stdout
    linted = forked(["--lint", "--configfile", "config/demo.yaml"], folder)
    assert linted.returncode == 0, linted.stdout
    imported = subprocess.run(
        [sys.executable, "-c", IMPORTS], cwd=folder, capture_output=True, text=True
    )
    assert imported.returncode == 0, imported.stderr
    replayed = forked(["--cores", "2", "--config", f"replay={STORED}"], folder)
    assert replayed.returncode == 0, replayed.stdout
    results = folder / "results/replay" / STORED
    assert snapshots.compare(STORED, snapshots.texts(STORED, results)) == []
    if APART[package]:
        study.configure(APART[package])
        refused = forked(["-n", "--configfile", "tiny.yaml"], folder)
        assert refused.returncode != 0
        assert f"needs workflow/scripts/{package}, which is not here" in refused.stdout


def test_each_package_beside_the_library_is_tried_without():
    scripts = ROOT / "workflow/scripts"
    extras = {f"extras/{path.parent.name}" for path in scripts.glob("extras/*/__init__.py")}
    assert set(APART) == {"grader", *extras}
