"""A torchvision model as an engineer trains it fast: bf16, channels-last, torch.compile, DDP.

The yardstick for our recipe `tuned` with models other than the lab's; it shares no code with it.
The images lie on the GPU; each batch is cropped at one random place and normalised there.

    torchrun --standalone --nproc-per-node=2 tests/bench/plain_model.py --model resnet50 \\
        --dataset resources/dataset/synthetic-224/images.npz --batch-size 256

Prints one JSON line per epoch (seconds of the slowest process) and one with the summary.
"""

import argparse
import json
import os
import statistics
import time

import numpy as np
import torch
import torch.distributed as dist
import torch.nn.functional as F
import torchvision
from torch.nn.parallel import DistributedDataParallel

PADDING = 4


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dataset", default="resources/dataset/synthetic-224/images.npz")
    parser.add_argument("--model", default="resnet50")
    parser.add_argument("--batch-size", type=int, default=256, help="per process")
    parser.add_argument("--epochs", type=int, default=4, help="the first is the warm-up")
    args = parser.parse_args()

    local_rank = int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", local_rank)
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    rank, world_size = dist.get_rank(), dist.get_world_size()
    torch.backends.cudnn.benchmark = True
    torch.set_float32_matmul_precision("high")

    with np.load(args.dataset) as arrays:
        images = torch.from_numpy(arrays["train_images"]).to(device).permute(0, 3, 1, 2)
        labels = torch.from_numpy(arrays["train_labels"]).to(device)
        classes = len(arrays["classes"])
    side = images.shape[2]
    images = F.pad(images, 4 * [PADDING])

    torch.manual_seed(0)
    model = torchvision.models.get_model(args.model, num_classes=classes).to(device)
    model = model.to(memory_format=torch.channels_last)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    if world_size > 1:
        model = DistributedDataParallel(model, device_ids=[local_rank])
    model = torch.compile(model)
    options = {"lr": 0.1, "momentum": 0.9, "weight_decay": 5e-4, "fused": True}
    optimizer = torch.optim.SGD(model.parameters(), **options)

    epoch_seconds = []
    for epoch in range(1, args.epochs + 1):
        model.train()
        order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(epoch))
        own = order[rank::world_size].to(device)
        loss_sum = torch.zeros((), device=device)
        dist.barrier()
        torch.cuda.synchronize()
        started = time.perf_counter()
        for index in own.split(args.batch_size):
            top, left = np.random.randint(0, 2 * PADDING + 1, 2)
            batch = images[index, :, top : top + side, left : left + side].float() / 255 - 0.5
            batch = batch.contiguous(memory_format=torch.channels_last)
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast("cuda", torch.bfloat16):
                loss = F.cross_entropy(model(batch), labels[index])
            loss.backward()
            optimizer.step()
            loss_sum += loss.detach() * len(index)
        torch.cuda.synchronize()
        seconds = torch.tensor(time.perf_counter() - started, device=device)
        dist.all_reduce(seconds, op=dist.ReduceOp.MAX)
        epoch_seconds.append(seconds.item())
        if rank == 0:
            line = {"epoch": epoch, "seconds": epoch_seconds[-1]}
            print(json.dumps(line | {"train_loss": loss_sum.item() / len(own)}), flush=True)

    if rank == 0:
        summary = {
            "model": args.model,
            "processes": world_size,
            "batch_size": args.batch_size,
            "parameters": parameters,
            "median_seconds": statistics.median(epoch_seconds[1:] or epoch_seconds),
            "peak_bytes": torch.cuda.max_memory_allocated(),
        }
        print(json.dumps(summary), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
