"""Real data-parallel training by torch's own parts, to compare the emulation with."""

import numpy as np
import torch
import torch.distributed as dist
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

from scaling.data.dataset import ImageDataset
from scaling.data.resident import ResidentImages
from scaling.models.resnet import ResNet18

WIDTH, SEED, EPOCHS, GPUS, GLOBAL_BATCH = 2, 3, 2, 2, 16
SIZES = [8, 8, 6]
"""Images of each of two ranks in each update of an epoch of 43 images."""
RATES = [0.002, 0.004, 0.008, 0.008, 0.006, 0.004]
MOMENTUM, WEIGHT_DECAY, PADDING = 0.9, 5e-4, 2
MEAN, STD = np.array([0.4, 0.5, 0.6]), np.array([0.2, 0.25, 0.3])


def images() -> ImageDataset:
    """43 images: over two ranks with batches of 8 each, the last update of an epoch is smaller."""
    pixels = np.random.default_rng(1).integers(0, 256, (43, 32, 32, 3), dtype=np.uint8)
    labels = np.arange(43, dtype=np.int64) % 5
    return ImageDataset(pixels, labels, pixels, labels, list("abcde"))


def train(rank: int, rendezvous: str, target: str) -> None:
    """Train as rank number `rank`; rank 0 saves the model's state to `target`."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", f"file://{rendezvous}", rank=rank, world_size=GPUS)
    torch.manual_seed(SEED)
    model = ResNet18(WIDTH, classes=5)
    wrapped = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(
        model.parameters(), lr=1.0, momentum=MOMENTUM, weight_decay=WEIGHT_DECAY
    )
    device = torch.device("cpu")
    shard = ResidentImages(images(), MEAN, STD, PADDING, True, device, rank, GPUS, SEED)
    rates = iter(RATES)
    for epoch in range(1, EPOCHS + 1):
        shard.draw(epoch)
        for size in SIZES:
            optimizer.param_groups[0]["lr"] = next(rates)
            inputs, labels = shard.next_batch(size)
            optimizer.zero_grad()
            functional.cross_entropy(wrapped(inputs), labels).backward()
            optimizer.step()
    if rank == 0:
        torch.save(model.state_dict(), target)
    dist.destroy_process_group()
