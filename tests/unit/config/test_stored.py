import copy
import os
from pathlib import Path

import pytest

from examples import finished_study
from scaling.config import stored
from scaling.core.errors import UserError

LOG = "logs/train_run/recipe~plain/strategy~ddp/gpus~1/batch_size~128/seed~0.log"


@pytest.fixture
def study(tmp_path):
    """A stored study with all its files, and a page written by hand."""
    for path in [*finished_study.FILES, "README.md"]:
        (tmp_path / "mine" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "mine" / path).write_text("{}")
    return tmp_path / "mine"


def config(**changes):
    return copy.deepcopy(finished_study.CONFIG) | changes


def test_a_wrong_name_is_answered_with_the_studies_there_are(study):
    (study.parent / "published").mkdir()
    (study.parent / "second").mkdir()
    (study.parent / "second/config.yaml").write_text("{}")
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
    (study / "config.yaml").write_text("{}")
    with pytest.raises(UserError, match=r"seed~0.log is (no file|a link out of its folder)"):
        stored.check(study, config())


def test_a_large_trace_is_refused(study):
    trace = study / Path(finished_study.FILES[-1]).with_name("trace.json.gz")
    trace.write_bytes(bytes(1_000_000))
    stored.check(study, config())
    trace.write_bytes(bytes(1_000_001))
    with pytest.raises(UserError, match=r"trace\.json\.gz is no file of at most 1,000,000 bytes"):
        stored.check(study, config())


@pytest.mark.parametrize(
    ("grid", "machine", "found"),
    [
        ([1], {"gpus_per_node": None}, []),
        ([1, 4, 2], {"gpus_per_node": None}, ["experiments/gpus~4/synchronization.json"]),
        ([1, 4, 8], {"gpus_per_node": 4}, ["experiments/gpus~4/synchronization.json"]),
    ],
)
def test_the_experiments_are_on_the_most_gpus_of_one_machine(grid, machine, found):
    own = finished_study.CONFIG["grid"] | {"gpus": grid}
    document = config(grid=own, machine=machine | {"check": "off"})
    assert [str(path) for path in stored.records(document)["synchronization"]] == found


@pytest.mark.parametrize("path", ["manifest.json", "peaks/peaks.json", finished_study.FILES[-1]])
def test_a_missing_file_is_named(study, path):
    (study / path).unlink()
    with pytest.raises(UserError, match=rf"mine lacks 1 of the 8 files .* the first is {path}:"):
        stored.check(study, config())


def test_missing_runs_but_no_missing_sweep_are_accepted_for_a_partial_report(study):
    (study / finished_study.FILES[-1]).unlink()
    stored.check(study, config(partial=True))
    (study / "interconnect/gpus~2/sweep.json").unlink()
    with pytest.raises(UserError, match=r"mine lacks 1 of the 6 files.*restore them$"):
        stored.check(study, config(partial=True))


@pytest.mark.parametrize(
    "path", ["quantization/seed~0/resnet18.json", "convergence/remedy~a/global_batch~128/runs.json"]
)
def test_a_record_that_the_study_does_not_ask_for_is_named(study, path):
    (study / path).parent.mkdir(parents=True, exist_ok=True)
    (study / path).write_text("{}")
    asked = {
        "quantization": finished_study.CONFIG["quantization"] | {"resnet18": True},
        "convergence": {"recipes": [{"name": "a"}], "global_batches": [128]},
    }
    section = path.partition("/")[0]
    stored.check(study, config(**{section: asked[section]}))
    with pytest.raises(UserError, match=rf"mine/{path} is no part of the study"):
        stored.check(study, config())
