"""What DistributedDataParallel says of itself."""

from torch import nn
from torch.nn.parallel import DistributedDataParallel


def bucket_bytes(model: nn.Module) -> list[int]:
    """The sizes of the gradient buckets DDP all-reduces each step; empty for other models.

    DDP settles its buckets in the first steps, in the order in which gradients become ready.
    """
    if not isinstance(model, DistributedDataParallel):
        return []
    logged = model._get_ddp_logging_data()
    sizes = logged.get("rebuilt_bucket_sizes") or logged.get("bucket_sizes") or ""
    return [int(size) for size in str(sizes).split(",") if size.strip()]
