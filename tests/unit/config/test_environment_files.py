import re
import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[3]


def test_the_conda_environment_installs_what_the_lock_file_pins():
    lock = (ROOT / "requirements.lock").read_text()
    pins = re.findall(r"^(\S+==.*) \\$", lock, re.MULTILINE)
    environment = yaml.safe_load((ROOT / "workflow/envs/study.yaml").read_text())
    assert len(pins) > 50 and environment["dependencies"][-1]["pip"] == pins


def test_every_requirement_is_pinned_by_hash_and_no_lock_line_has_an_address():
    wanted = (ROOT / "requirements.in").read_text().splitlines()
    names = [line.split(">=")[0].lower() for line in wanted if line and not line.startswith("#")]
    lock = (ROOT / "requirements.lock").read_text()
    assert [name for name in names if f"\n{name}==" not in f"\n{lock}".lower()] == []
    assert "://" not in lock
    pins = [line for line in lock.splitlines() if "==" in line and not line.startswith(" ")]
    assert all(line.endswith("\\") for line in pins)


def test_citation_and_changelog_have_the_version_of_pyproject():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == version
    assert re.findall(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(), re.M)[0] == version
