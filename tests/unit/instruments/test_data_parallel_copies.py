"""What DataParallel's functions move, seen without a GPU: on tensors that have no data."""

from unittest.mock import patch

import torch
from torch.nn.parallel import _functions as functions
from torch.nn.parallel import comm

from scaling.instruments.messages import Messages, copies

GPUS = [0, 1]


# Copies of a step on two GPUs that are made up; nothing moves.
MADE_UP = {
    "broadcast_coalesced": lambda tensors, devices: [tensors for _ in devices],
    "reduce_add_coalesced": lambda inputs, destination: inputs[0],
    "scatter": lambda tensor, devices, sizes, dim, streams: tensor.chunk(len(devices), dim),
    "gather": lambda tensors, dim, destination: torch.cat(tensors, dim),
}


@patch.multiple(comm, **MADE_UP)
def test_parameters_and_a_batch_go_out_gradients_come_back_and_buffers_are_one_message():
    messages = Messages()
    messages.phase = "forward"
    weights = [torch.ones(size, device="meta", requires_grad=True) for size in (3, 5)]
    images = torch.ones(4, 3, device="meta")
    buffers = [torch.ones(2, device="meta"), torch.ones((), dtype=torch.long, device="meta")]
    with copies(messages):
        replicas = functions.Broadcast.apply(GPUS, *weights)
        shares = functions.Scatter.apply(GPUS, None, 0, images)
        scale = torch.ones((), device="meta", requires_grad=True)
        outputs = functions.Gather.apply(0, 0, *(share[:, :1] * scale for share in shares))
        comm.broadcast_coalesced(buffers, GPUS)
        comm.broadcast_coalesced([], GPUS)
        messages.phase = "backward"
        sum(replica.sum() for replica in replicas).backward()
        outputs.sum().backward()
    assert comm.scatter is MADE_UP["scatter"]
    rows = [(row["phase"], row["kind"], row["dtype"], row["bytes"]) for row in messages.rows]
    assert rows == [
        ("forward", "broadcast", "float32", 32),
        ("forward", "scatter", "float32", 48),
        ("forward", "gather", "float32", 16),
        ("forward", "broadcast", "float32+int64", 16),
        ("backward", "reduce", "float32", 32),
        ("backward", "scatter", "float32", 16),
    ]
