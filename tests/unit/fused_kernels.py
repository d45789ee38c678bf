"""Where the tests of Triton kernels run: on the GPU, or by Triton's interpreter on the CPU.

Import this before any module that has kernels: Triton decides when it sees them.
"""

import os

import torch

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
if DEVICE.type == "cpu":
    os.environ["TRITON_INTERPRET"] = "1"
