"""torch.compile's cache: how much of it was used, and a way around a damaged one.

PyTorch's cache (`TORCHINDUCTOR_CACHE_DIR`, `TRITON_CACHE_DIR`) is keyed by code, shapes, options,
versions and device, and written atomically, so processes may share it.
"""

import sys
from contextlib import ExitStack

import torch


def cache_use() -> dict[str, int]:
    """Return how many graphs came from the cache (`kept`), and how many were compiled."""
    if "torch._dynamo.utils" not in sys.modules:
        return {"kept": 0, "made": 0}
    found = torch._dynamo.utils.counters["aot_autograd"]
    made = found["autograd_cache_miss"] + found["autograd_cache_bypass"]
    return {"kept": found["autograd_cache_hit"], "made": made}


def anew() -> ExitStack:
    """Compile with an empty cache from now on; closing the returned object deletes it."""
    from torch._inductor.utils import fresh_cache

    torch.compiler.reset()
    emptied = ExitStack()
    emptied.enter_context(fresh_cache())
    return emptied
