"""Recipe `course`: the lab as a student writes it, with the standard PyTorch parts.

torchvision transforms (random crop, flip, normalise) in a DataLoader with worker processes, plain
SGD with momentum in float32, torch.nn.DataParallel or DistributedDataParallel. Nothing is tuned,
nothing is held back.
"""

from collections.abc import Callable
from time import perf_counter

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.nn.parallel import DataParallel, DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler
from torchvision import transforms

from scaling.dataset import ImageDataset
from scaling.ddp import bucket_bytes
from scaling.ranks import Rank
from scaling.recipes.trained import Report, Trained
from scaling.record import EpochRow
from scaling.run_spec import RunSpec


class TrainingImages(Dataset[tuple[torch.Tensor, int]]):
    """The training images, augmented by torchvision, as (float [3, 32, 32], label)."""

    def __init__(
        self, data: ImageDataset, mean: list[float], std: list[float], spec: RunSpec
    ) -> None:
        self._images = data.train_images
        self._labels = data.train_labels.tolist()
        steps: list[Callable[..., object]] = [
            transforms.RandomCrop(32, padding=spec.crop_padding),
            *([transforms.RandomHorizontalFlip()] if spec.horizontal_flip else []),
            transforms.ToTensor(),
            transforms.Normalize(mean, std),
        ]
        self._transform = transforms.Compose(steps)

    def __len__(self) -> int:
        return len(self._labels)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return self._transform(Image.fromarray(self._images[index])), self._labels[index]


class WaitingClock:
    """Iterates over a DataLoader and adds up the seconds spent waiting for it."""

    def __init__(self, loader: DataLoader) -> None:
        self._loader = loader
        self.seconds = 0.0

    def __iter__(self) -> "WaitingClock":
        started = perf_counter()
        self._batches = iter(self._loader)
        self.seconds += perf_counter() - started
        return self

    def __next__(self) -> tuple[torch.Tensor, torch.Tensor]:
        started = perf_counter()
        try:
            batch: tuple[torch.Tensor, torch.Tensor] = next(self._batches)
        finally:
            self.seconds += perf_counter() - started
        return batch


def train(
    spec: RunSpec,
    rank: Rank,
    model: nn.Module,
    data: ImageDataset,
    mean: np.ndarray,
    std: np.ndarray,
    report: Report,
) -> Trained:
    """Train `model` (on the rank's device) for the epochs of `spec`.

    `mean` and `std` are the three channels' of the training images in [0, 1]. Each finished epoch
    is handed to `report`. Times are host seconds with the device idle at both ends.
    """
    images = TrainingImages(data, mean.tolist(), std.tolist(), spec)
    cell = spec.cell
    sampler: DistributedSampler | None = None
    parallel: nn.Module = model
    batch_size = cell.global_batch_size
    if rank.processes > 1:
        parallel = DistributedDataParallel(
            model, device_ids=[rank.device] if rank.device.type == "cuda" else None
        )
        sampler = DistributedSampler(images, shuffle=True, seed=cell.seed)
        batch_size = cell.batch_size
    elif cell.gpus > 1:
        parallel = DataParallel(model, device_ids=list(range(cell.gpus)))
    loader = DataLoader(
        images,
        batch_size=batch_size,
        sampler=sampler,
        shuffle=sampler is None,
        num_workers=spec.recipe_options["loader_workers"],
        pin_memory=rank.device.type == "cuda",
    )
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(
        model.parameters(),
        lr=spec.learning_rate,
        momentum=spec.momentum,
        weight_decay=spec.weight_decay,
    )
    torch.manual_seed(cell.seed * 1000 + rank.index)

    parallel.train()
    for epoch in range(1, spec.epochs + 1):
        if sampler is not None:
            sampler.set_epoch(epoch)
        loss_sum = torch.zeros((), device=rank.device)
        correct = torch.zeros((), device=rank.device, dtype=torch.long)
        iterations = samples = 0

        rank.barrier()
        rank.synchronize(cell.gpus)
        started = perf_counter()
        batches = WaitingClock(loader)
        for inputs, labels in batches:
            inputs = inputs.to(rank.device, non_blocking=True)
            labels = labels.to(rank.device, non_blocking=True)
            optimizer.zero_grad()
            outputs = parallel(inputs)
            loss = criterion(outputs, labels)
            loss.backward()
            optimizer.step()
            loss_sum += loss.detach() * len(labels)
            correct += (outputs.detach().argmax(1) == labels).sum()
            iterations += 1
            samples += len(labels)
        rank.synchronize(cell.gpus)
        seconds = perf_counter() - started

        mean_loss = loss_sum.item() / samples
        report(
            EpochRow(
                epoch=epoch,
                rank=rank.index,
                role="warmup" if epoch <= spec.warmup_epochs else "measured",
                seconds=seconds,
                loader_seconds=batches.seconds,
                iterations=iterations,
                samples=samples,
                train_loss=mean_loss if np.isfinite(mean_loss) else None,
                train_accuracy=correct.item() / samples,
            )
        )
    return Trained(parallel, bucket_bytes(parallel), spec.recipe_options)
