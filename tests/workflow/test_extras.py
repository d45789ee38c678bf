"""The project without one of its extras plans, is linted and replays all the same."""

import shutil

import pytest

from small_study import ROOT, Study, forked

EXTRAS = "workflow/scripts/extras"
ASKED = {
    "bits": {"quantization.peers": ["onnxruntime"]},
    "kernels": {
        "grid.recipes": ["tuned"],
        "recipes.tuned.fused_norms": True,
        "recipes.tuned.channels_last": True,
        "device": "cuda",
    },
}
"""What an extra measures, and is refused without it."""


def test_each_extra_is_tried_without():
    found = {path.parent.name for path in (ROOT / EXTRAS).glob("*/__init__.py")}
    assert found == set(ASKED)


@pytest.mark.parametrize("extra", ASKED)
def test_without_an_extra_the_rest_works(extra, tmp_path):
    study = Study(tmp_path, {})
    shutil.rmtree(study.folder / EXTRAS / extra)
    shutil.copytree(ROOT / "tests/snapshots/studies/cpu", study.folder / "studies/cpu")

    demo = forked(["-n", "--configfile", "config/demo.yaml"], study.folder)
    assert demo.returncode == 0 and "quantize_evaluate" in demo.stdout, demo.stdout
    linted = forked(["--lint", "--configfile", "config/demo.yaml"], study.folder)
    assert linted.returncode == 0, linted.stdout

    replayed = forked(["--cores", "2", "--config", "replay=cpu", "--", "claims"], study.folder)
    assert replayed.returncode == 0, replayed.stdout
    expected = ROOT / "tests/snapshots/expected/cpu/tables"
    tables = study.folder / "results/replay/cpu/tables"
    for name in ("speedup", "quantization", "quantization_resnet"):
        (made,) = tables.rglob(f"{name}.csv")
        (before,) = expected.rglob(f"{name}.csv")
        assert len(made.read_text().splitlines()) == len(before.read_text().splitlines())

    study.configure(ASKED[extra])
    refused = forked(["-n", "--configfile", "tiny.yaml"], study.folder)
    assert refused.returncode != 0
    assert f"needs {EXTRAS}/{extra}, which is not here" in refused.stdout
