"""Where the tests of Triton kernels run: on the GPU, or by Triton's interpreter on the CPU.

Triton asks which when it is imported, when it sees a kernel, and when it runs one. So this comes
before whatever else imports Triton, as torchvision does: `conftest` sees to it.
"""

import os

import pytest
import torch

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
INTERPRET = {} if DEVICE.type == "cuda" else {"TRITON_INTERPRET": "1"}

os.environ.update(INTERPRET)
from scaling.models import norm_kernels  # noqa: E402, F401

for name in INTERPRET:
    del os.environ[name]


@pytest.fixture
def interpreter(monkeypatch):
    """Kernels run by the interpreter where there is no GPU."""
    for name, value in INTERPRET.items():
        monkeypatch.setenv(name, value)
