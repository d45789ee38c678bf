"""What torch.compile took from its cache, and a fresh cache where that one is damaged.

PyTorch keys what it keeps by code, shapes, options, versions and device (`TORCHINDUCTOR_CACHE_DIR`,
`TRITON_CACHE_DIR`), and writes it whole: processes may share it.
"""

import sys
from contextlib import ExitStack

import torch


def cache_use() -> dict[str, int]:
    """Return how many graphs this process had from the cache (`kept`), how many it compiled."""
    if "torch._dynamo.utils" not in sys.modules:
        return {"kept": 0, "made": 0}
    found = torch._dynamo.utils.counters["aot_autograd"]
    made = found["autograd_cache_miss"] + found["autograd_cache_bypass"]
    return {"kept": found["autograd_cache_hit"], "made": made}


def anew() -> ExitStack:
    """Compile into an empty folder from now on; closing what is returned deletes it."""
    from torch._inductor.utils import fresh_cache

    torch.compiler.reset()
    emptied = ExitStack()
    emptied.enter_context(fresh_cache())
    return emptied
