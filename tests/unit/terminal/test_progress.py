"""What the terminal says of a finished measurement."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from scaling.terminal import progress

BUSY = {"severity": "odd", "host": "vm", "gpu": "", "message": "other processes use 2 cores"}


@pytest.fixture
def study(tmp_path, monkeypatch):
    """A started study with records in a folder, and the list of what it says."""
    made, said = progress.Progress.__new__(progress.Progress), []
    made._records, made._warned = tmp_path, []
    monkeypatch.setattr(progress, "say", said.append)
    return made, said


def test_machine_check_says_its_findings_once(study, tmp_path):
    made, said = study
    for folder, findings in (("machine", []), ("machine/repeat~1", [BUSY, BUSY | {"host": "vm2"}])):
        check = {"check": "warn", "hosts": [], "gpus": [], "findings": findings, "environment": {}}
        progress.CHECK.write(tmp_path / folder / "check.json", check)
        made._warn(Path(folder, "check.json"))
        made._warn(Path(folder, "check.json"))
    assert said == ["Machine check: vm: other processes use 2 cores. And 1 more: machine.csv."]


@pytest.mark.parametrize(
    ("wildcards", "name"),
    [({"repeat": ""}, ""), ({"gpus": "2", "repeat": "/repeat~1"}, ", gpus 2, repeat 1")],
)
def test_measurement_is_named_with_its_repeat(study, wildcards, name):
    made, _ = study
    made._jobs = {0: SimpleNamespace(rule=SimpleNamespace(name="a_b"), wildcards=wildcards)}
    made._places = {0: [Path("peaks.json")]}
    assert made._outcome(0) == f"a b{name}"
