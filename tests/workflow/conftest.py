"""Small studies that tests run and change."""

import os

import pytest
from filelock import FileLock

from forked import python_that_forks
from small_study import TINY, Study, copied, studies
from training_runs import DEVICE


@pytest.fixture(scope="session", autouse=True)
def python(tmp_path_factory):
    """Let jobs run in forks of a process that has imported their libraries."""
    if DEVICE == "cuda":
        yield
        return
    folder = tmp_path_factory.mktemp("python")
    server = python_that_forks(folder)
    before = os.environ["PATH"]
    os.environ["PATH"] = f"{folder}:{before}"
    yield
    os.environ["PATH"] = before
    server.kill()
    server.wait()


@pytest.fixture
def new_study(tmp_path):
    """Return a function that creates a study with changed values."""
    yield from studies(Study, lambda: tmp_path)


@pytest.fixture(scope="session")
def finished_study(tmp_path_factory):
    """Return a finished study, which all workers of pytest share.

    Tests that change the study use the copy `study`.
    """
    own = tmp_path_factory.getbasetemp()
    made = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "finished"
    said = made / "said.txt"
    with FileLock(f"{made}.lock"):
        if not said.exists():
            with pytest.MonkeyPatch.context() as patch:
                # As in a process of torchrun, which is nobody's rank here.
                patch.setenv("RANK", "1")
                patch.setenv("WORLD_SIZE", "2")
                finished = Study(made, TINY).snakemake()
            assert finished.returncode == 0, finished.stdout
            said.write_text(finished.stdout)
    study = copied(made, own / "copy")
    study.said = said.read_text().replace(str(made), str(study.folder))
    return study


@pytest.fixture
def study(finished_study, tmp_path):
    """Return a copy of the finished study, which the test may change."""
    return copied(finished_study.folder, tmp_path / "copy")
