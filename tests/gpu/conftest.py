"""Each test finds the environment as it was: commands take GPUs for their whole process."""

import os
from unittest import mock

import pytest


@pytest.fixture(autouse=True)
def environment_as_it_was():
    with mock.patch.dict(os.environ):
        yield
