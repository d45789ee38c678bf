"""Generated files agree with their sources."""

import json
import re
import tomllib
from runpy import run_path

import pytest
import yaml
from snakemake.exceptions import WorkflowError
from snakemake.utils import validate

from examples.configurations import ROOT

KEYS = run_path(str(ROOT / "docs/config_keys.py"))
SCHEMA = ROOT / "config/schema.json"


def test_readme_and_schema_describe_all_keys():
    page = (ROOT / "config/README.md").read_text()
    assert KEYS["updated"](page) == page
    assert json.loads(SCHEMA.read_text()) == KEYS["schema"]()


def test_schema_accepts_configurations_and_no_unknown_key():
    for path in [*(ROOT / "config").glob("*.yaml"), *(ROOT / "studies").glob("*/config.yaml")]:
        validate(yaml.safe_load(path.read_text()), SCHEMA, set_default=False)
    for wrong in ({"grid": {"gpu": [1]}}, {"recipes": {"a": {"loader_workers": -1}}}):
        with pytest.raises(WorkflowError, match=r"gpu|minimum of 0"):
            validate(wrong, SCHEMA, set_default=False)


@pytest.mark.parametrize(
    ("name", "lock"), [("study", "requirements.lock"), ("report", "requirements-replay.lock")]
)
def test_conda_environment_installs_the_locks_pins(name, lock):
    pins = re.findall(r"^(\S+==.*) \\$", (ROOT / lock).read_text(), re.MULTILINE)
    environment = yaml.safe_load((ROOT / f"workflow/envs/{name}.yaml").read_text())
    assert len(pins) > 50 and environment["dependencies"][-1]["pip"] == pins


def test_citation_and_changelog_have_the_version_of_pyproject():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == version
    assert re.findall(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(), re.M)[0] == version
