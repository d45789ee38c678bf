"""The lab as a student writes it, in one file: ResNet-18 on 32×32 images with DDP.

The yardstick for our recipe `plain`; it shares no code with it. Started by torchrun:

    torchrun --standalone --nproc-per-node=2 \
        studies/h200x2-models/sharded/plain_ddp.py --batch-size 512

Prints one JSON line per epoch, with the seconds of the slowest process.
"""

import argparse
import json
import os
import time

import numpy as np
import torch
import torch.distributed as dist
import torch.nn.functional as F
from PIL import Image
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler
from torchvision import transforms

CIFAR10_MEAN = (0.4914, 0.4822, 0.4465)
CIFAR10_STD = (0.2470, 0.2435, 0.2616)


class Images(Dataset):
    def __init__(self, path, transform):
        with np.load(path) as arrays:
            self.images = arrays["train_images"]
            self.labels = arrays["train_labels"].tolist()
            self.classes = len(arrays["classes"])
        self.transform = transform

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.transform(Image.fromarray(self.images[index])), self.labels[index]


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.shortcut = nn.Sequential()
        if stride > 1:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(y + self.shortcut(x))


def resnet18(width, classes):
    layers = [nn.Conv2d(3, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
    layers += [Block(width, width, 1), Block(width, width, 1)]
    for _ in range(3):
        layers += [Block(width, 2 * width, 2), Block(2 * width, 2 * width, 1)]
        width *= 2
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, classes))


def parser_of(description):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--dataset", default="resources/dataset/cifar10/images.npz")
    parser.add_argument("--batch-size", type=int, default=128, help="per process")
    parser.add_argument("--epochs", type=int, default=5, help="the first is the warm-up")
    parser.add_argument("--device", default="cuda", choices=["cpu", "cuda"])
    parser.add_argument("--width", type=int, default=64, help="channels of the first stage")
    return parser


def main():
    args = parser_of(__doc__).parse_args()

    local_rank = int(os.environ["LOCAL_RANK"])
    if args.device == "cuda":
        device = torch.device("cuda", local_rank)
        torch.cuda.set_device(device)
        dist.init_process_group("nccl", device_id=device)
    else:
        device = torch.device("cpu")
        dist.init_process_group("gloo")
    rank, world_size = dist.get_rank(), dist.get_world_size()

    def synchronize():
        if device.type == "cuda":
            torch.cuda.synchronize()

    images = Images(
        args.dataset,
        transforms.Compose(
            [
                transforms.RandomCrop(32, padding=4),
                transforms.RandomHorizontalFlip(),
                transforms.ToTensor(),
                transforms.Normalize(CIFAR10_MEAN, CIFAR10_STD),
            ]
        ),
    )
    sampler = DistributedSampler(images)
    loader = DataLoader(
        images,
        batch_size=args.batch_size,
        sampler=sampler,
        num_workers=2,
        pin_memory=device.type == "cuda",
    )

    torch.manual_seed(0)
    model = resnet18(args.width, images.classes).to(device)
    if world_size > 1:
        model = DistributedDataParallel(
            model, device_ids=[local_rank] if device.type == "cuda" else None
        )
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)

    for epoch in range(1, args.epochs + 1):
        sampler.set_epoch(epoch)
        model.train()
        loss_sum = torch.zeros((), device=device)
        correct = torch.zeros((), device=device)
        synchronize()
        started = time.perf_counter()
        for inputs, labels in loader:
            inputs = inputs.to(device, non_blocking=True)
            labels = labels.to(device, non_blocking=True)
            optimizer.zero_grad()
            outputs = model(inputs)
            loss = criterion(outputs, labels)
            loss.backward()
            optimizer.step()
            loss_sum += loss.detach() * len(labels)
            correct += (outputs.argmax(1) == labels).sum()
        synchronize()
        seconds = torch.tensor(time.perf_counter() - started, device=device)

        dist.all_reduce(seconds, op=dist.ReduceOp.MAX)
        if rank == 0:
            line = {
                "epoch": epoch,
                "seconds": seconds.item(),
                "train_loss": loss_sum.item() / len(sampler),
                "train_accuracy": correct.item() / len(sampler),
            }
            print(json.dumps(line), flush=True)

    dist.destroy_process_group()


if __name__ == "__main__":
    main()
