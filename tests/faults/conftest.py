"""Small studies of the real Snakemake and real processes, to be killed."""

import pytest
from faulty_study import FaultyStudy

from scaling.launch import lease
from small_study import TINY


@pytest.fixture(scope="session", autouse=True)
def leases():
    """Timed jobs wait for one another, as they do for a user."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv(lease.SHARE_VARIABLE, raising=False)
        yield


@pytest.fixture
def new_study(tmp_path):
    """A function that makes a study with values changed; what it started ends with the test."""
    made = []

    def make(**overrides):
        folder = tmp_path / f"study{len(made)}"
        changed = {name.replace("__", "."): value for name, value in overrides.items()}
        made.append(FaultyStudy(folder, TINY | {"machine.check": "off"} | changed))
        return made[-1]

    yield make
    for study in made:
        study.end()
