"""Set variables before PyTorch is imported, order the tests, and write shared images."""

import os
import signal

import pytest

# Before PyTorch is imported: processes that compile beside the test take seconds to start.
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")

# Before PyTorch is imported: sums, and what a network learns, depend on the number of threads.
os.environ["OMP_NUM_THREADS"] = "1"

# Tests that run side by side would wait for one another.
os.environ.setdefault("SCALING_STUDY_SHARE", "1")

from scaling.core.records.kind import DATASET
from scaling.data import dataset
from training_runs import INTERPRET, dark_and_light

os.environ.update(INTERPRET)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Run tests of training first: they take longest, so no worker waits for them at the end."""
    items.sort(key=lambda item: "unit/training" not in item.nodeid)


def pytest_collection_finish():
    """Remove Triton's variable after the tests that import Triton are collected."""
    for name in INTERPRET:
        del os.environ[name]


@pytest.fixture(scope="session", autouse=True)
def interruptible():
    """Restore signals that nohup and shells' background jobs ignore; child processes inherit it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(scope="session")
def images(tmp_path_factory):
    """Return a folder with images.npz and manifest.json of `training_runs.dark_and_light`."""
    folder, data = tmp_path_factory.mktemp("images"), dark_and_light()
    dataset.save(data, folder / "images.npz")
    DATASET.write(folder / "manifest.json", dataset.manifest(data, "images", "made for a test"))
    return folder
