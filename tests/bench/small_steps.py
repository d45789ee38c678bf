"""Training in short steps, of eight layers: a millisecond or two, by default too small for a GPU.

    python tests/bench/small_steps.py --gpus 1 --epochs 20 --laps laps.jsonl

With more GPUs it is started by torchrun. Rank 0 prints a line of JSON for each epoch of an even
number and for each step of the others, as docs/own_trainer.md says; `--laps` gets when each epoch
began and ended, by the machine's clock after the GPU's work.
"""

import argparse
import json
import os
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

LAYERS = 8


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpus", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=0.1, help="of an epoch, about")
    parser.add_argument("--width", type=int, default=128, help="of the layers")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--laps", required=True)
    args = parser.parse_args()
    width = args.width

    rank, on_gpu = int(os.environ.get("LOCAL_RANK", 0)), torch.cuda.is_available()
    device = torch.device("cuda", rank) if on_gpu else torch.device("cpu")
    synchronize = torch.cuda.synchronize if on_gpu else lambda: None
    layers = [part for _ in range(LAYERS) for part in (nn.Linear(width, width), nn.ReLU())]
    model = nn.Sequential(*layers).to(device)
    if args.gpus > 1:
        if on_gpu:
            torch.cuda.set_device(device)
        dist.init_process_group("nccl" if on_gpu else "gloo")
        model = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    inputs = torch.randn(args.batch_size, width, device=device)
    images = args.batch_size * args.gpus

    def step():
        optimizer.zero_grad()
        model(inputs).square().mean().backward()
        optimizer.step()

    def tell(**said):
        if rank == 0:
            print(json.dumps(said), flush=True)

    def train(steps, epoch=None):
        """When the steps began and ended; with an epoch each of them is told."""
        synchronize()
        start = before = time.monotonic()
        for number in range(steps):
            step()
            if epoch is not None:
                synchronize()
                now = time.monotonic()
                tell(epoch=epoch, step=number, seconds=now - before, samples=images)
                before = now
        synchronize()
        return start, time.monotonic()

    train(50)
    start, end = train(50)
    steps = torch.tensor(round(50 * args.seconds / (end - start)) or 1, device=device)
    if args.gpus > 1:
        dist.broadcast(steps, 0)
    steps = int(steps)
    with Path(args.laps if rank == 0 else os.devnull).open("w") as laps:
        for epoch in range(args.epochs):
            by_step = epoch % 2 == 1
            start, end = train(steps, epoch if by_step else None)
            if not by_step:
                tell(epoch=epoch, seconds=end - start, samples=steps * images)
            lap = {"by": "step" if by_step else "epoch", "start": start, "end": end}
            print(json.dumps({**lap, "steps": steps}), file=laps, flush=True)
    if args.gpus > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
