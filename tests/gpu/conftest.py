"""Each test finds the environment as it was: commands take GPUs for their whole process."""

import os
import shutil
from unittest import mock

import pytest

if shutil.which("nvidia-smi"):
    # Where there is a GPU there are cores: the default, which the other tests do not wait for.
    os.environ.pop("TORCHINDUCTOR_COMPILE_THREADS", None)


@pytest.fixture(autouse=True)
def environment_as_it_was():
    with mock.patch.dict(os.environ):
        yield
