"""One Slurm for each module of tests, and studies that run on it."""

import os
from functools import partial

import cluster
import pytest

from small_study import studies


@pytest.fixture(scope="module")
def slurm():
    """Return the folder of the cluster's state. Without a cluster, skip the tests or fail."""
    if reason := cluster.reason_not_to_start():
        (pytest.fail if "SLURM_REQUIRED" in os.environ else pytest.skip)(reason)
    with cluster.cluster() as folder:
        yield folder


@pytest.fixture(scope="module")
def new_slurm_study(slurm, tmp_path_factory):
    """Return a function that creates a study with changed values. Snakemake ends with the test."""
    yield from studies(cluster.SlurmStudy, partial(tmp_path_factory.mktemp, "study"))
