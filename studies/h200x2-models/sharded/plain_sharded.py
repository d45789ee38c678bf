"""Sharded training as PyTorch's documentation writes it; the network is plain_ddp.py's.

The yardstick for `fsdp` (fully_shard, each block for itself) and `zero1` (DistributedDataParallel
with ZeroRedundancyOptimizer) of recipe `tuned`, with which it shares no code. Images stay on the
GPU, and matrix products run in bf16. Started by torchrun:

    torchrun --standalone --nproc-per-node=2 \
        studies/h200x2-models/sharded/plain_sharded.py --strategy fsdp --compile

Prints one JSON line per epoch, with the seconds of the slowest process.
"""

import json
import os
import time

import numpy as np
import torch
import torch.distributed as dist
from plain_ddp import CIFAR10_MEAN, CIFAR10_STD, Block, parser_of, resnet18
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel


def augmented(images, mean, std):
    """Random crops with 4 pixels of padding, half of them flipped, normalized."""
    count, side = len(images), images.shape[-1]
    images = nn.functional.pad(images, (4, 4, 4, 4))
    first = torch.randint(9, (2, count, 1), device=images.device)
    rows, columns = first + torch.arange(side, device=images.device)
    flipped = torch.rand(count, 1, device=images.device) < 0.5
    columns = torch.where(flipped, columns.flip(1), columns)
    which = torch.arange(count, device=images.device)[:, None, None]
    images = images[which, :, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)
    return (images / 255 - mean) / std


def sharded(model, strategy, compiled):
    """The model with each block compiled, and its optimizer, one of the two sharded."""
    for place, module in enumerate(model):
        if isinstance(module, Block):
            block = torch.compile(module, dynamic=False) if compiled else module
            model[place] = fully_shard(block) if strategy == "fsdp" else block
    options = {"lr": 0.1, "momentum": 0.9, "weight_decay": 5e-4}
    if strategy == "fsdp":
        return fully_shard(model), torch.optim.SGD(model.parameters(), **options)
    model = DistributedDataParallel(model, gradient_as_bucket_view=True)
    return model, ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, **options)


def main():
    parser = parser_of(__doc__)
    parser.add_argument("--strategy", required=True, choices=["fsdp", "zero1"])
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--images", type=int, default=50_000, help="of an epoch")
    args = parser.parse_args()

    device = torch.device("cpu")
    if args.device == "cuda":
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
        torch.backends.cudnn.benchmark = True
    dist.init_process_group("nccl" if args.device == "cuda" else "gloo")
    rank, world_size = dist.get_rank(), dist.get_world_size()

    with np.load(args.dataset) as arrays:
        images = torch.from_numpy(arrays["train_images"][: args.images]).to(device)
        labels = torch.from_numpy(arrays["train_labels"][: args.images]).to(device)
        classes = len(arrays["classes"])
    images = images.permute(0, 3, 1, 2)
    mean, std = (
        torch.tensor(values, device=device).view(3, 1, 1) for values in (CIFAR10_MEAN, CIFAR10_STD)
    )

    torch.manual_seed(0)
    model = resnet18(args.width, classes).to(device)
    if args.strategy == "zero1":  # fully_shard takes contiguous parameters only.
        model = model.to(memory_format=torch.channels_last)
    model, optimizer = sharded(model, args.strategy, args.compile)
    criterion = nn.CrossEntropyLoss()

    for epoch in range(1, args.epochs + 1):
        model.train()
        torch.manual_seed(epoch)
        order = torch.randperm(len(images), device=device)[rank::world_size]
        batches = order[: len(order) // args.batch_size * args.batch_size].split(args.batch_size)
        dist.barrier()
        started = time.perf_counter()
        loss_sum = torch.zeros((), device=device)
        for batch in batches:
            inputs = augmented(images[batch], mean, std)
            inputs = inputs.contiguous(memory_format=torch.channels_last)
            optimizer.zero_grad()
            with torch.autocast(device.type, torch.bfloat16):
                loss = criterion(model(inputs), labels[batch])
            loss.backward()
            optimizer.step()
            loss_sum += loss.detach() * len(batch)
        train_loss = loss_sum.item() / len(batches) / args.batch_size
        seconds = torch.tensor(time.perf_counter() - started, device=device)
        dist.all_reduce(seconds, op=dist.ReduceOp.MAX)
        if rank == 0:
            line = {"epoch": epoch, "seconds": seconds.item(), "loss": train_loss}
            line["samples"] = len(batches) * args.batch_size * world_size
            line["ms_per_step"] = 1e3 * seconds.item() / len(batches)
            print(json.dumps(line), flush=True)

    dist.destroy_process_group()


if __name__ == "__main__":
    main()
