"""A process group of this process alone."""

from contextlib import contextmanager

import torch.distributed as dist

ENDED = []
"""Groups of this process. A thread of gloo that drops a group last joins itself, and aborts."""


@contextmanager
def one_rank(folder):
    """Within the block this process is the only rank of a group."""
    dist.init_process_group("gloo", f"file://{folder}/store", rank=0, world_size=1)
    ENDED.append(dist.group.WORLD)
    yield
    dist.destroy_process_group()
