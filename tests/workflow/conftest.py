"""Small studies to run, to change and to break."""

import os
import shutil

import pytest
import torch
import yaml

from forked import python_that_forks
from small_study import TINY, Study


@pytest.fixture(scope="session", autouse=True)
def python(tmp_path_factory):
    """Jobs fork a process that has imported their libraries, instead of starting Python."""
    if torch.cuda.is_available():
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
    """A function that makes a fresh study with values changed."""

    def make(**overrides):
        return Study(tmp_path, {**TINY, **{k.replace("__", "."): v for k, v in overrides.items()}})

    return make


@pytest.fixture(scope="session")
def finished_study(tmp_path_factory):
    """A study that has run to its report. A test that edits it works on a copy: see `study`."""
    study = Study(tmp_path_factory.mktemp("study"), TINY)
    finished = study.snakemake()
    assert finished.returncode == 0, finished.stdout
    study.said = finished.stdout
    return study


@pytest.fixture
def study(finished_study, tmp_path):
    """A copy of the finished study with the times of its files, for one test to change."""
    shutil.copytree(finished_study.folder, tmp_path / "copy", symlinks=True)
    copy = object.__new__(Study)
    copy.folder = tmp_path / "copy"
    copy.config = yaml.safe_load((copy.folder / "tiny.yaml").read_text())
    return copy
