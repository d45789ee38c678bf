"""Each test finds the environment as it was: commands take GPUs for their whole process."""

import os
import shutil
from unittest import mock

import pytest

if shutil.which("nvidia-smi"):
    # Where there is a GPU there are cores: the default, which the other tests do not wait for.
    os.environ.pop("TORCHINDUCTOR_COMPILE_THREADS", None)


def pytest_collection_modifyitems(items):
    """First the study that asks for GPUs without another process, as this one will be."""
    items.sort(key=lambda item: "short_way" not in item.nodeid)


@pytest.fixture(autouse=True)
def environment_as_it_was():
    with mock.patch.dict(os.environ):
        yield
