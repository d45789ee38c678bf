"""Restore flags and variables after each test, because jobs set them for the whole process."""

import os
import shutil
from pathlib import Path
from unittest import mock

import pytest
import torch

FLAGS = [
    *((torch.backends.cudnn, name) for name in ("benchmark", "benchmark_limit", "allow_tf32")),
    (torch.backends.cuda.matmul, "allow_tf32"),
]

if shutil.which("nvidia-smi"):
    # Where there is a GPU there are cores: the default, which the other tests do not wait for.
    os.environ.pop("TORCHINDUCTOR_COMPILE_THREADS", None)


def pytest_collection_modifyitems(items):
    """Run the study that needs unused GPUs before this process does. Skip all without a GPU."""
    items.sort(key=lambda item: "short_way" not in item.nodeid)
    for item in items:
        if item.path.parent == Path(__file__).parent and not torch.cuda.device_count():
            item.add_marker(pytest.mark.skip("needs a GPU"))


@pytest.fixture(autouse=True)
def process_as_it_was():
    before = [(module, name, getattr(module, name)) for module, name in FLAGS]
    with mock.patch.dict(os.environ):
        yield
    for flag in before:  # Some modules have flags that monkeypatch would delete.
        setattr(*flag)
