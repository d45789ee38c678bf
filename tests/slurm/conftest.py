"""A Slurm of our own for all tests here, and studies that run on it."""

import cluster
import pytest
from slurm_study import SlurmStudy

from small_study import TINY


@pytest.fixture(scope="session", autouse=True)
def slurm():
    reason = cluster.reason_not_to_start()
    if reason:
        pytest.skip(reason)
    with cluster.cluster():
        yield


@pytest.fixture(scope="module")
def new_slurm_study(tmp_path_factory):
    """A function that makes a fresh study with values changed."""

    def make(**overrides):
        changed = {name.replace("__", "."): value for name, value in overrides.items()}
        return SlurmStudy(tmp_path_factory.mktemp("study"), {**TINY, **changed})

    return make
