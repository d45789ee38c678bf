"""Without the packages that can be deleted, a study is planned, and a stored one is replayed."""

import shutil

import snapshots
from small_study import ROOT, forked

EXTRAS = [path.parent.name for path in ROOT.glob("workflow/scripts/extras/*/__init__.py")]
APART = ["grader", *(f"extras/{name}" for name in EXTRAS)]
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
