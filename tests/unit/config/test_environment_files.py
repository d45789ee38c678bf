from pathlib import Path

import yaml

ROOT = Path(__file__).parents[3]


def test_the_conda_environment_has_what_the_study_runs_on():
    """The first paragraph of requirements.in is what the study runs on, the second its tests."""
    needed = (ROOT / "requirements.in").read_text().split("\n\n")[0].splitlines()[1:]
    environment = yaml.safe_load((ROOT / "workflow/envs/study.yaml").read_text())
    assert environment["dependencies"][-1]["pip"] == needed


def test_every_requirement_is_pinned_by_hash_and_no_lock_line_has_an_address():
    wanted = (ROOT / "requirements.in").read_text().splitlines()
    names = [line.split(">=")[0].lower() for line in wanted if line and not line.startswith("#")]
    lock = (ROOT / "requirements.lock").read_text()
    assert [name for name in names if f"\n{name}==" not in f"\n{lock}".lower()] == []
    assert "://" not in lock
    pins = [line for line in lock.splitlines() if "==" in line and not line.startswith(" ")]
    assert all(line.endswith("\\") for line in pins)
