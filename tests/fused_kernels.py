"""Where Triton kernels run in tests: on the GPU, or by Triton's interpreter on the CPU.

Triton asks which when it is imported, when it sees a kernel, and when it runs one. Whatever imports
Triton while tests are collected, as torchvision does, finds the answer that `conftest` gives then.
"""

from scaling.core.environment import visible_gpus

DEVICE = "cuda" if visible_gpus() else "cpu"
INTERPRET = {} if DEVICE == "cuda" else {"TRITON_INTERPRET": "1"}
