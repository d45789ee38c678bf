import copy
import os
from pathlib import Path

import pytest

from examples import finished_study
from scaling.config import stored
from scaling.core.errors import UserError

LAST = finished_study.FILES[-1]
LOG = "logs/train_run/recipe~plain/strategy~ddp/gpus~1/batch_size~128/seed~0.log"
TECHNIQUE = {"convergence": {"recipes": [{"name": "a"}], "global_batches": [128]}}
RESNET = {"quantization": finished_study.CONFIG["quantization"] | {"resnet18": True}}


@pytest.fixture
def study(tmp_path):
    """A stored study with all its files, and a page written by hand."""
    for path in [*finished_study.FILES, "README.md"]:
        put(tmp_path / "mine" / path)
    return tmp_path / "mine"


def put(path, size=2):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"{}".ljust(size))


def config(**changes):
    return copy.deepcopy(finished_study.CONFIG) | changes


def test_a_wrong_name_is_answered_with_the_studies_there_are(study):
    (study.parent / "published").mkdir()
    put(study.parent / "second/config.yaml")
    for name in ("yours", "", "..", "mine/runs", "published"):
        with pytest.raises(UserError, match=f"has no study '{name}': there are mine, second$"):
            stored.find(study.parent, name)
    assert stored.find(study.parent, "mine") == study


@pytest.mark.parametrize("kind", ["link", "fifo", "device"])
def test_what_is_no_file_of_the_study_is_neither_waited_for_nor_shown(study, kind, tmp_path):
    (tmp_path / "secret").write_text("secret: [")
    for name in ("config.yaml", LOG):
        place = study / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.unlink(missing_ok=True)
        if kind == "fifo":
            os.mkfifo(place)
        else:
            place.symlink_to({"link": tmp_path / "secret", "device": "/dev/zero"}[kind])
    with pytest.raises(UserError, match=r"config.yaml is (no file|a link out of its folder)"):
        stored.read(study)
    (study / "config.yaml").unlink()
    put(study / "config.yaml")
    with pytest.raises(UserError, match=r"seed~0.log is (no file|a link out of its folder)"):
        stored.check(study, config())


@pytest.mark.parametrize(
    ("gpus", "per_node", "found"), [([1], None, []), ([1, 4, 2], None, [4]), ([1, 4, 8], 4, [4])]
)
def test_the_experiments_are_on_the_most_gpus_of_one_machine(gpus, per_node, found):
    grid = finished_study.CONFIG["grid"] | {"gpus": gpus}
    document = config(grid=grid, machine={"gpus_per_node": per_node, "check": "off"})
    paths = [Path(f"experiments/gpus~{count}/synchronization.json") for count in found]
    assert stored.records(document)["synchronization"] == paths


@pytest.mark.parametrize(
    ("path", "partial", "told"),
    [
        ("manifest.json", False, "1 of the 8 files .* the first is manifest.json: restore them$"),
        (LAST, False, f"first is {LAST}: restore them, or pass --config partial=true"),
        (LAST, True, None),
        ("interconnect/gpus~2/sweep.json", True, "lacks 1 of the 6 files.*restore them$"),
    ],
)
def test_a_missing_file_is_named_unless_it_is_a_run_of_a_partial_study(study, path, partial, told):
    (study / path).unlink()
    if told is None:
        stored.check(study, config(partial=partial))
        return
    with pytest.raises(UserError, match=told):
        stored.check(study, config(partial=partial))


@pytest.mark.parametrize(
    ("path", "size", "asked"),
    [
        ("quantization/seed~0/resnet18.json", 2, RESNET),
        ("convergence/remedy~a/global_batch~128/runs.json", 2, TECHNIQUE),
        (str(Path(LAST).with_name("trace.json.gz")), 1_000_001, None),
    ],
)
def test_a_record_that_the_study_does_not_ask_for_or_a_large_trace_is_named(
    study, path, size, asked
):
    put(study / path, size)
    if asked:
        stored.check(study, config(**asked))
    with pytest.raises(UserError, match=rf"mine/{path} is no (part of|file of at most 1,000,000)"):
        stored.check(study, config())
