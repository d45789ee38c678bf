"""Without the packages that can be deleted, a study is planned, and a stored one is replayed."""

import shutil

import snapshots
from small_study import ROOT, forked

APART = ["grader", "extras/kernels"]
"""Packages below workflow/scripts that are deleted, without their tests."""
STORED = "h200x2-vit"


def test_library_works_without_packages_beside_it(new_study):
    folder = new_study().folder
    for package in APART:
        shutil.rmtree(folder / "workflow/scripts" / package)
    planned = forked(["-n", "--configfile", "config/demo.yaml"], folder)
    assert planned.returncode == 0 and "rule report_render" in planned.stdout, planned.stdout
    replayed = forked(["--cores", "2", "--config", f"replay={STORED}"], folder)
    assert replayed.returncode == 0, replayed.stdout
    results = folder / "results/replay" / STORED
    assert snapshots.compare(STORED, snapshots.texts(results)) == []


def test_packages_that_can_be_deleted_are_listed():
    scripts = ROOT / "workflow/scripts"
    extras = {f"extras/{path.parent.name}" for path in scripts.glob("extras/*/__init__.py")}
    assert set(APART) == {"grader", *extras}
